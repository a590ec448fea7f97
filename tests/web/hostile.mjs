// Text that must reach the page as text: markup, a handler, bidirectional marks, a tag character, an escape of terminals.
export const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>\u202Egnp.exe\u2066 \u{E0041}\u200B\u001B[31m{{7*7}}';
