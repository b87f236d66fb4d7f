// A service in Node. Its greeting is live, wherever it is changed; its secret is asked for when it is needed.
//
//     npm install ../../clients/node
//     prefs schema load shop.json --application shop
//     prefs set --secret shop/token
//     node service.mjs 8081
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { InvalidValue, Settings } from 'coffer-client'

const settings = await Settings.open('shop')
settings.onChange('shop', 'greeting', item => console.log('The greeting is now', item.value))

const digest = value => createHash('sha256').update(value).digest()

const routes = {
  'GET /': () => [200, `${settings.get('shop', 'greeting', String)} from Node\n`],
  'POST /greeting': async request => {
    const wanted = `Bearer ${(await settings.secret('shop', 'token')).text}`
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), digest(wanted))) return [401, 'That is not the token.\n']
    try {
      await settings.set('shop', 'greeting', await text(request))
      return [204]
    } catch (error) {
      if (error instanceof InvalidValue) return [422, `${error.message}\n`]
      throw error
    }
  },
  'GET /health': () => (settings.problem ? [503, `${settings.problem.message}\n`] : [204])
}

const server = createServer(async (request, response) => {
  try {
    const [status, body = ''] = await (routes[`${request.method} ${request.url}`] ?? (() => [404]))(request)
    response.writeHead(status).end(body)
  } catch (error) {
    console.error(error.message)
    response.writeHead(500).end()
  }
})
server.listen(Number(process.argv[2]), '127.0.0.1')
process.on('SIGTERM', () => server.close(() => settings.close()))
