"""An MCP server at https: `mcp_server.py FOLDER BEHAVIOUR…`, one for each behaviour, in this order.

FOLDER has cert.pem and key.pem. Prints the ports on one line. A behaviour is `tools`, `mute` (no TLS), `silent` (TLS and no
answer), or a status.
"""

import http.server
import json
import socketserver
import ssl
import sys
import threading
import time

FOLDER, BEHAVIOURS = sys.argv[1], sys.argv[2:]
TOOL = {"name": "tide", "description": "Says the tide", "inputSchema": {"type": "object", "properties": {}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, result=None):
        body = b"" if result is None else json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        behaviour = self.server.behaviour
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if behaviour == "silent":
            time.sleep(600)
        if behaviour != "tools":
            return self.answer(int(behaviour))
        if self.command != "POST":
            return self.answer(405)
        message = json.loads(body)
        results = {
            "initialize": lambda: {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "tides", "version": "1"},
            },
            "tools/list": lambda: {"tools": [TOOL]},
        }
        if "id" not in message:
            return self.answer(202)
        result = results.get(message["method"], dict)()
        return self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    do_POST = do_DELETE = do_GET


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, behaviour):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = behaviour

    def handle_error(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{FOLDER}/cert.pem", f"{FOLDER}/key.pem")
servers = [Server(behaviour) for behaviour in BEHAVIOURS]
for server in servers:
    # Whoever is in the queue of one that is mute waits.
    if server.behaviour != "mute":
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
print(*(server.server_address[1] for server in servers), flush=True)
sys.stdin.read()
