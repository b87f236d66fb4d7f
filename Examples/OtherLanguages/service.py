"""A service in Python, with Flask. Its greeting is live, wherever it is changed; its secret is asked for when it is needed.

    pip install flask ../../clients/python
    prefs schema load shop.json --application shop
    prefs set --secret shop/token
    python3 service.py 8080
"""

import hmac
import sys

from coffer_client import InvalidValue, Settings
from flask import Flask, request

settings = Settings("shop")
app = Flask(__name__)


@app.get("/")
def greet():
    return f"{settings.get('shop', 'greeting', str)} from Python\n"


@app.post("/greeting")
def change_greeting():
    wanted = f"Bearer {settings.secret('shop', 'token').text}"
    if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), wanted.encode()):
        return "That is not the token.\n", 401
    try:
        settings.set("shop", "greeting", request.get_data(as_text=True))
    except InvalidValue as error:
        return f"{error}\n", 422
    return "", 204


@app.get("/health")
def health():
    return ("", 204) if settings.problem is None else (f"{settings.problem}\n", 503)


settings.on_change("shop", "greeting", lambda item: print("The greeting is now", item.value, flush=True))
app.run(port=int(sys.argv[1]))
