#!/usr/bin/env python3
"""An S3-compatible storage for the tests: moto, on a free port of the loopback, until its standard input ends.

It has a bucket `fleets`, and checks signatures. Prints a line: the port, and the names and secrets of two access keys, of which the first may
do everything, and the second only reads.
"""

import json
import logging
import os
import sys
import threading

sys.dont_write_bytecode = True
# Before moto is loaded: every request needs a signature.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"

from moto.core import DEFAULT_ACCOUNT_ID  # noqa: E402
from moto.iam import access_control  # noqa: E402
from moto.iam.models import iam_backends  # noqa: E402
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: E402
from moto.s3.models import s3_backends  # noqa: E402
from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: E402


class SentRequest(access_control.S3IAMRequest):
    """moto checks the signature of a path that it has decoded; what is signed is the path that was sent."""

    target = ""

    def __init__(self, **arguments):
        super().__init__(**{**arguments, "path": SentRequest.target})


access_control.S3IAMRequest = SentRequest


def access_key(name, actions):
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    iam.create_user("us-east-1", name)
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    iam.put_user_policy(name, "policy", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    key = iam.create_access_key(name)
    return key.access_key_id, key.secret_access_key


def main():
    keys = access_key("writer", ["s3:*"]) + access_key("reader", ["s3:GetObject", "s3:ListBucket"])
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket("fleets", "us-east-1")
    moto = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()

    def one_at_a_time(environment, start):
        # moto looks at the condition of a PUT before it stores the object; a real storage does both at once.
        with lock:
            SentRequest.target = environment["REQUEST_URI"]
            return [b"".join(moto(environment, start))]

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # It keeps connections, each on a thread.
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=WSGIRequestHandler)
    print(server.server_port, *keys, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
