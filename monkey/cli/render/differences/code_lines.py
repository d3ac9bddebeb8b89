"""The difference of two code snapshots in lines: a unified diff, and what is no text by size and hash."""

from __future__ import annotations

from monkey.cli.terminal.text import Terminal, flatten_text, format_plural, make_printable
from monkey.plan.sizes import format_size
from monkey.plan.text.short_texts import cut_text
from monkey.results.differences.code_difference import CodeDifference, ComparedFile, FileChange
from monkey.transfer.code.code_manifest import PathKind

#: Lines of one file, and of all, and columns of a line that are shown unless all are asked for.
_MAX_FILE_LINES, _MAX_LINES, _MAX_COLUMNS = 200, 1_000, 400
#: Files that are named.
_MAX_FILES = 100
_COLOURS = {"-": "red", "+": "green", "@": "cyan", "\\": "dim"}
#: What a terminal would obey, and what shows in its place: lines that differ by it alone must not look alike.
_SHOWN = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys(
        (0x7F, *range(0x80, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
    ),
}


def format_code(found: CodeDifference, to: Terminal, *, everything: bool) -> list[str]:
    """Return what differs in two snapshots; `everything`: cut nothing."""
    count = format_plural(len(found.files), "file")
    lines = [f"{to.paint('code', 'bold')}  {found.before[:12]} → {found.after[:12]}, {count}"]
    if found.trouble:
        lines.append(to.paint(f"! {flatten_text(found.trouble)}: compared by hashes alone", "yellow"))
    room = _MAX_LINES
    files = found.files if everything else found.files[:_MAX_FILES]
    for one in files:
        most = len(one.lines) if everything else min(_MAX_FILE_LINES, room)
        lines += _format_file(one, most, to, _MAX_COLUMNS if not everything else None)
        room -= min(len(one.lines), most)
    if len(files) < len(found.files):
        lines.append(to.paint(f"… and {len(found.files) - len(files):,} more files; --all shows them", "dim"))
    return lines


def _format_file(one: FileChange, most: int, to: Terminal, columns: int | None) -> list[str]:
    path = flatten_text(one.path)
    about = _describe_states(one)
    if not one.lines:
        return [f"{to.paint(path, 'bold')}  {about}"]
    before = "/dev/null" if one.before is None else f"a/{path}"
    after = "/dev/null" if one.after is None else f"b/{path}"
    lines = [to.paint(f"--- {before}", "bold"), to.paint(f"+++ {after}", "bold")]
    lines += [to.paint(f"{path}  {about}", "yellow")] if _has_other_kind(one) else []
    for line in one.lines[:most]:
        text = make_printable(line.translate(_SHOWN))
        lines.append(to.paint(cut_text(text, columns) if columns else text, _COLOURS.get(line[0], "")))
    left = len(one.lines) - min(most, len(one.lines))
    return lines + ([to.paint(f"… {left:,} more lines of {path}; --all shows them", "dim")] if left else [])


def _has_other_kind(one: FileChange) -> bool:
    return one.before is not None and one.after is not None and one.before.kind is not one.after.kind


def _describe_states(one: FileChange) -> str:
    states = " → ".join(_describe_state(state) for state in (one.before, one.after) if state)
    return flatten_text(", ".join(filter(None, (one.status, one.reason, states))))


def _describe_state(state: ComparedFile) -> str:
    size = "" if state.size is None else format_size(state.size)
    kind = "" if state.kind in (None, PathKind.FILE) else str(state.kind)
    return " ".join(filter(None, (kind, size, state.sha256[:12])))
