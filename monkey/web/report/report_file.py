"""The page as one file: its scripts and styles within, under a policy that lets no other script run, and its data.

All that jobs, specs and the store say is in one block, as letters and digits of base64. So nothing of it can end that
block, or be read as HTML. A browser reads a file without asking its neighbours: so modules are joined to one script.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib

from monkey.web.page_server import load_assets
from monkey.web.report.report_data import ReportData
from monkey.web.safe_json import encode_shown_json

#: Beside the hashes of our scripts and styles: nothing is loaded or asked, and no text becomes markup.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_ASSET = re.compile(
    r'<link rel="stylesheet" href="assets/([\w.-]+)">|<script src="assets/([\w.-]+)"(?: defer| type="module")></script>'
)
_ENTRY = "main.js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.-]+)";$', re.MULTILINE)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
#: As a file of others lists what it exports: at its end.
_LISTED = re.compile(r"export\s*\{([^}]*)\};?\s*$")


def build_report(data: ReportData) -> bytes:
    """Return the report as a file of HTML; the same for the same data."""
    assets = {name: body.decode() for name, body in load_assets().items() if isinstance(body, bytes)}
    hashes: dict[str, list[str]] = {"script": [], "style": []}

    def put_in(found: re.Match[str]) -> str:
        style, script = found.groups()
        text = assets[style] if style else join_modules(assets, _ENTRY) if script == _ENTRY else assets[script]
        kind = "style" if style else "script"
        assert f"</{kind}" not in text.lower()  # it would end there; tests hold that no file of ours has it
        hashes[kind].append(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
        opening = f'{kind} type="module"' if script == _ENTRY else kind
        return f"<{opening}>{text}</{kind}>"

    page = _ASSET.sub(put_in, assets["index.html"])
    policy = _POLICY.format(scripts=" ".join(hashes["script"]), styles=" ".join(hashes["style"]))
    meta = f'<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="{policy}">'
    packed = zlib.compress(encode_shown_json({"answers": data.answers, "curves": data.curves}), 9)
    block = f'<script type="text/plain" id="answers">{base64.b64encode(packed).decode()}</script>\n  </body>'
    return page.replace('<meta charset="utf-8">', meta, 1).replace("</body>", block, 1).encode()


def join_modules(assets: dict[str, str], entry: str) -> str:
    """Return the module `entry` of `assets`, and all that it imports, as one script: each module is a function's body.

    They import by names in braces, in one line, and in no circle.
    """
    joined: dict[str, str] = {}

    def add_module(name: str) -> None:
        text = assets[name]
        for _, other in _IMPORT.findall(text):
            if other not in joined:
                add_module(other)
        joined[name] = _wrap_module(name, text)

    add_module(entry)
    return "const modules = {};\n" + "".join(joined.values())


def _wrap_module(name: str, text: str) -> str:
    declared, listed = _DECLARED.findall(text), _LISTED.search(text)
    # `of as name` of an import is `of: name` of an object, and `name: of` of the object that a module returns.
    text = _IMPORT.sub(lambda one: f'const {{{one[1].replace(" as ", ": ")}}} = modules["{one[2]}"];', text)
    text = _DECLARED.sub("", _LISTED.sub("", text))
    pairs = [one.split(" as ") for one in listed[1].split(",")] if listed else [[one, one] for one in declared]
    exports = ", ".join(f"{pair[-1]}: {pair[0]}" for pair in pairs)
    return f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {exports} }};\n}})();\n'
