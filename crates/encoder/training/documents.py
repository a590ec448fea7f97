"""The text of a tool that the program gives its encoder, and the pieces it makes of a text.

A port of `crates/registry/src/embedding/views.rs`, `crates/tool/src/purpose.rs` and
`crates/encoder/src/pieces.rs`: what is trained on is what is run.
"""
import json
import pathlib
import re
import unicodedata

DESCRIPTION_CHARS = 240
PARAMETERS = 8
PURPOSE_COLUMNS = 100
READ_CHARS = 4_000
CAPTION_WORDS = 4
ABBREVIATIONS = set("e.g i.e etc vs cf approx incl excl dr mr ms st fig no".split())
DEPTH, REFERENCES = 8, 8


def speak(name):
    """`getUserInfo_v2` is `get user info v2`."""
    words, before = [], " "
    for c in name:
        if c.isupper() and (before.islower() or before in "0123456789"):
            words.append(" ")
        words.append(c.lower() if c.isalnum() else " ")
        before = c
    return " ".join("".join(words).split())


def parameters(schema):
    """Names of the properties, required ones first, as `Node::fields` finds them."""
    found = {}

    def resolve(node):
        for _ in range(REFERENCES):
            reference = node.get("$ref") if isinstance(node, dict) else None
            if isinstance(reference, str) and reference.startswith("#"):
                target = schema
                for part in reference[1:].split("/")[1:]:
                    part = part.replace("~1", "/").replace("~0", "~")
                    target = target.get(part) if isinstance(target, dict) else None
                if not isinstance(target, dict):
                    return node
                node = target
                continue
            says = ("type", "properties", "required", "enum", "const", "anyOf", "oneOf")
            if isinstance(node, dict) and not any(key in node for key in says):
                every = node.get("allOf")
                if isinstance(every, list) and len(every) == 1:
                    node = every[0]
                    continue
            break
        return node if isinstance(node, dict) else {}

    def own(node, fields):
        properties = node.get("properties")
        for name in properties if isinstance(properties, dict) else ():
            fields.setdefault(name, False)
        required = node.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str):
                fields[name] = True

    def read(node, fields, depth):
        if depth >= DEPTH or not isinstance(node, dict):
            return
        own(node, fields)
        node = resolve(node)
        own(node, fields)
        for part in node.get("allOf") or ():
            read(part, fields, depth + 1)
        several = [*(node.get("anyOf") or ()), *(node.get("oneOf") or ())]
        times = {}
        for part in several:
            of_part = {}
            read(part, of_part, depth + 1)
            for name, required in of_part.items():
                times[name] = times.get(name, 0) + required
                fields.setdefault(name, False)
        for name, count in times.items():
            fields[name] |= count == len(several)

    read(schema, found, 0)
    return sorted(found, key=lambda name: not found[name])


def has_words(line):
    return any(c.isalnum() for c in line)


def is_prose(line):
    caption = line.endswith(":") and len(line.split()) <= CAPTION_WORDS
    return has_words(line) and not line.startswith(("#", "```")) and not caption


def first_paragraph(text):
    lines = [line.strip() for line in text.splitlines()]
    paragraph = []
    for line in lines:
        if not paragraph and not is_prose(line):
            continue
        item = line[:2] in ("- ", "* ", "• ", "+ ", "> ")
        word = line.split(":", 1)[0] if ":" in line else ""
        label = word[:1].isupper() and word.isalpha()
        if paragraph and (not is_prose(line) or item or label):
            break
        paragraph.append(line)
    return paragraph or [line for line in lines if has_words(line)][:1]


def flat(lines):
    text = " ".join(lines).replace("**", "").replace("__", "_")
    text = re.sub(r"\[([^\]\[]*)\]\([^)]*\)", r"\1", text)
    text = "".join(c if unicodedata.category(c) not in ("Cc", "Cf") else " " for c in text)
    text = " ".join(text.replace("`", "").split())
    start = next((at for at, c in enumerate(text) if c.isalnum() or c in "[(\"'/$@<"), len(text))
    return re.sub(r"^\d{1,2}[.)] ", "", text[start:])


def ends_here(before, after):
    after = after.lstrip("\"')]")
    if after and not after.startswith(" "):
        return False
    after = after.lstrip()
    if after[:1].islower():
        return False
    word = re.split(r"[ (]", before)[-1]
    initial = len(word) == 1 and word.isupper()
    number = len(word) <= 2 and all(c in "0123456789" for c in word)
    return not after or not (initial or number or word.lower() in ABBREVIATIONS)


def first_sentence(description):
    text = flat(first_paragraph(description[:READ_CHARS]))
    for at, c in enumerate(text):
        if c in "。！？" or c in ".!?" and ends_here(text[:at], text[at + 1 :]):
            text = text[: at + 1]
            break
    return text.rstrip(".。:;, ")


def columns(text):
    return sum(1 if c.isascii() else 2 for c in text)


def cut(text):
    if columns(text) <= PURPOSE_COLUMNS:
        return text
    room, end = PURPOSE_COLUMNS - 1, 0
    for c in text:
        room -= columns(c)
        if room < 0:
            break
        end += 1
    head = text[:end]
    space = -1 if text[end : end + 1] == " " else head.rfind(" ")
    return head[: space if space > end / 2 else end].rstrip(" ,;:.") + "…"


def purpose(tool, names):
    description = tool.get("description") or ""
    title = tool.get("title") or (tool.get("annotations") or {}).get("title") or ""
    sentence = first_sentence(description) or first_sentence(title)
    if not sentence:
        sentence = speak(tool["name"]).capitalize()
        if names:
            sentence += " by " + ", ".join(speak(name) for name in names[:4])
    return cut(sentence)


def views(server, tool):
    """The text that the program embeds, and two shorter ones that are only learned from."""
    schema = tool.get("inputSchema") or tool.get("input_schema") or {}
    names = parameters(schema)
    name = f"{speak(server)} {speak(tool['name'])}"
    begin = " ".join((tool.get("description") or "").split())[:DESCRIPTION_CHARS]
    said = ", ".join(speak(it) for it in names[:PARAMETERS])
    return [f"{name}: {begin} ({said})", f"{name}: {purpose(tool, names)}", speak(tool["name"])]


class Pieces:
    """Text to ids, as BERT's uncased models split it."""

    def __init__(self, vocabulary):
        lines = pathlib.Path(vocabulary).read_text(encoding="utf8").split("\n")
        self.ids = {piece: number for number, piece in enumerate(lines) if piece}
        self.begin, self.end, self.unknown = (self.ids[it] for it in ("[CLS]", "[SEP]", "[UNK]"))
        self.known = {}

    def of(self, text, most):
        ids = [self.begin]
        for word in split(text):
            if word not in self.known:
                self.known[word] = self.of_word(word)
            ids.extend(self.known[word])
            if len(ids) >= most:
                break
        return ids[: most - 1] + [self.end]

    def of_word(self, word):
        if len(word) > 100:
            return [self.unknown]
        ids, rest = [], word
        while rest and rest != "##":
            for end in range(len(rest), 2 if ids else 0, -1):
                if rest[:end] in self.ids:
                    ids.append(self.ids[rest[:end]])
                    rest = "##" + rest[end:]
                    break
            else:
                return [self.unknown]
        return ids


def stands_alone(c):
    at = ord(c)
    chinese = (
        0x3400 <= at <= 0x4DBF or 0x4E00 <= at <= 0x9FFF or 0xF900 <= at <= 0xFAFF
        or 0x20000 <= at <= 0x2CEAF or 0x2F800 <= at <= 0x2FA1F
    )
    if chinese or at < 128:
        return chinese or at > 32 and at != 127 and not c.isalnum()
    return unicodedata.category(c).startswith("P")


def split(text):
    plain = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.category(c).startswith("M"))
    spaced = []
    for c in plain.lower():
        category = unicodedata.category(c)
        if c == "\ufffd" or category == "Cf" or category == "Cc" and not c.isspace():
            continue
        spaced.append(f" {c} " if stands_alone(c) else c)
    return "".join(spaced).split()


def read_lines(path):
    with open(path, encoding="utf8") as file:
        return [json.loads(line) for line in file if line.strip()]


def read_tools(shared):
    """Every tool of `servers/` and of `retrieval/dev/scale`, `{(server, name): tool}`."""
    tools = {}
    for path in sorted(pathlib.Path(shared, "servers", "snapshots").glob("*.json")):
        snapshot = json.loads(path.read_text(encoding="utf8"))
        for tool in snapshot["tools"]:
            tools.setdefault((snapshot["name"], tool["name"]), tool)
    for tool in read_lines(pathlib.Path(shared, "retrieval", "dev", "scale", "tools.jsonl")):
        tools.setdefault((tool["server"], tool["name"]), tool)
    return tools


def tool_of(row):
    """The definition in a line of `servers/`."""
    return {
        "name": row["name"],
        "description": row["description"],
        "inputSchema": {"properties": {name: {} for name in row["params"]}},
    }
