"""Opens a file in a headless Chromium and prints what there is to find fault with, as JSON.

The arguments are the program, the file, and a folder for pictures.
"""

import base64
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, FILE, PICTURES = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
URL = FILE.as_uri()


class Browser:
    """Speaks the DevTools protocol over two pipes, which Chromium has as 3 and 4."""

    def __init__(self, profile):
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()

        def as_3_and_4():
            # Neither may be what the other becomes.
            high_in, high_out = os.dup2(theirs_in, 100), os.dup2(theirs_out, 101)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        options = ["--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", *options, "about:blank"], preexec_fn=as_3_and_4, close_fds=False,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers, self.rest, self.events, self.session = itertools.count(1), b"", [], None

    def read(self):
        while b"\0" not in self.rest:
            piece = os.read(self.back, 1 << 20)
            if not piece:
                sys.exit("Chromium has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def until(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read())

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def key(self, key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if kind == "keyDown" and key == "Enter" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, name):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        (PICTURES / name).write_bytes(base64.b64decode(data))


def look(browser):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    browser.call("Page.navigate", url=URL)
    browser.until("Page.loadEventFired")
    seen = {"title": browser.value("document.title"), "overflow": {}, "colors": {}}
    # Scripts of the page itself would show here.
    browser.value("document.querySelectorAll('details').forEach(part => part.open = true)")
    for width in (360, 1280):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        seen["overflow"][width] = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            seen["colors"][scheme] = browser.value("getComputedStyle(document.body).backgroundColor")
            browser.picture(f"{width}-{scheme}.png")
    browser.value("document.querySelectorAll('details').forEach(part => part.open = false)")
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    shown = "[...document.querySelectorAll('.part > :last-child')].every(part => part.checkVisibility())"
    seen["print"] = browser.value(shown)
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    seen["folded"] = browser.value(shown)
    # By keyboard: from one fold to the next, and each opens.
    folds = browser.value("[...document.querySelectorAll('summary')].filter(it => it.checkVisibility()).length")
    opened = []
    for _ in range(200):
        browser.key("Tab", 9)
        if browser.value("document.activeElement.tagName") == "SUMMARY":
            browser.key("Enter", 13)
            opened.append(browser.value("document.activeElement.parentElement.open"))
        if len(opened) >= folds:
            break
    seen["opened"] = len(opened) >= folds and all(opened)
    links = "[...document.querySelectorAll('.times a')].map(it => it.getAttribute('href'))"
    seen["links"] = browser.value(links)
    seen["lost"] = browser.value(f"{links}.filter(it => !document.querySelector(it))")
    noise = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
    seen["console"] = [event["params"] for event in browser.events if event.get("method") in noise]
    sent = [event["params"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"]
    seen["requests"] = [it["request"]["url"] for it in sent if it["request"]["url"] != URL]
    print(json.dumps(seen))


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    chromium = Browser(folder)
    try:
        look(chromium)
    finally:
        chromium.process.kill()
        chromium.process.wait()
