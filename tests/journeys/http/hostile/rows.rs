//! The rows: a part of a request, and the expected response.

pub(super) const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// The expected statuses: the response has one of these. 0: the connection ends without a response.
pub(super) type Statuses = &'static [u16];

const LET_IN: Statuses = &[200];
const UNREADABLE: Statuses = &[400, 0];

/// `ADDR` and `PORT` are replaced by the address of the proxy.
pub(super) const HOSTS: [(&str, Statuses); 25] = [
    ("Host: ADDR", LET_IN),
    ("Host: 127.0.0.1", LET_IN),
    ("Host: localhost:PORT", LET_IN),
    ("Host: LocalHost", LET_IN),
    ("Host: [::1]:PORT", LET_IN),
    ("Host: 127.0.0.2:PORT", LET_IN),
    ("Host: evil.example", &[403]),
    ("Host: evil.example:PORT", &[403]),
    ("Host: 127.0.0.1.evil.example", &[403]),
    ("Host: localhost.evil.example:PORT", &[403]),
    ("Host: evil.example#127.0.0.1", &[403]),
    ("Host: evil.example/127.0.0.1", &[403]),
    ("Host: 127.0.0.1@evil.example", &[403]),
    ("Host: evil.example@127.0.0.1", &[403]),
    ("Host: 10.0.0.1:PORT", &[403]),
    ("Host: 0.0.0.0:PORT", &[403]),
    ("Host: 0x7f.0.0.1", &[403]),
    ("Host: 2130706433", &[403]),
    ("Host: 127.1", &[403]),
    ("Host: [::1", &[403]),
    ("Host: localhost localhost", &[403]),
    ("Host: \u{200b}localhost", &[403]),
    ("Host:", &[403]),
    ("X-Host: ADDR", &[403]),
    ("Host: ADDR\r\nHost: ADDR", &[403]),
];

pub(super) const ORIGINS: [(&str, Statuses); 16] = [
    ("Origin: http://ADDR", LET_IN),
    ("Origin: http://localhost:PORT", LET_IN),
    ("Origin: HTTP://LOCALHOST:PORT", LET_IN),
    ("Origin: https://chat.example.com", LET_IN),
    ("Origin: https://evil.example", &[403]),
    ("Origin: http://chat.example.com", &[403]),
    ("Origin: https://chat.example.com:444", &[403]),
    ("Origin: https://chat.example.com.evil.example", &[403]),
    ("Origin: https://ADDR", &[403]),
    ("Origin: http://localhost:1", &[403]),
    ("Origin: http://ADDR.evil.example", &[403]),
    ("Origin: http://ADDR@evil.example", &[403]),
    ("Origin: null", &[403]),
    ("Origin: file://", &[403]),
    ("Origin:", &[403]),
    (
        "Origin: http://ADDR\r\nOrigin: https://chat.example.com",
        &[403],
    ),
];

pub(super) const TOKENS: [(&str, Statuses); 16] = [
    ("Authorization: Bearer TOKEN", LET_IN),
    ("Authorization: bearer TOKEN", LET_IN),
    ("Authorization: Bearer  TOKEN ", LET_IN),
    ("X-None: 1", &[401]),
    ("Authorization:", &[401]),
    ("Authorization: TOKEN", &[401]),
    ("Authorization: Bearer", &[401]),
    ("Authorization: Bearer \"TOKEN\"", &[401]),
    ("Authorization: Basic TOKEN", &[401]),
    ("Authorization: Bearer TOKENx", &[401]),
    ("Authorization: Bearer 0123456789abcdef", &[401]),
    ("Authorization: Bearer TOKEN, Bearer TOKEN", &[401]),
    (
        "Authorization: Bearer x\r\nAuthorization: Bearer TOKEN",
        &[401],
    ),
    ("Proxy-Authorization: Bearer TOKEN", &[401]),
    ("X-Api-Key: TOKEN", &[401]),
    ("Cookie: token=TOKEN", &[401]),
];

/// The first line of an otherwise valid request.
pub(super) const LINES: [(&str, Statuses); 22] = [
    ("POST /mcp HTTP/1.1", LET_IN),
    ("POST /mcp/ HTTP/1.1", LET_IN),
    ("POST http://ADDR/mcp HTTP/1.1", LET_IN),
    ("POST http://evil.example/mcp HTTP/1.1", &[403]),
    ("POST //mcp HTTP/1.1", &[404]),
    ("POST /MCP HTTP/1.1", &[404]),
    ("POST /mcp/x HTTP/1.1", &[404]),
    ("POST /x/../mcp HTTP/1.1", &[404]),
    ("POST /%6dcp HTTP/1.1", &[404]),
    ("POST /mcp%00 HTTP/1.1", &[404]),
    ("PUT /mcp HTTP/1.1", &[405]),
    ("PATCH /mcp HTTP/1.1", &[405]),
    ("TRACE /mcp HTTP/1.1", &[405]),
    ("HEAD /mcp HTTP/1.1", &[405]),
    ("post /mcp HTTP/1.1", &[405]),
    ("CONNECT evil.example:443 HTTP/1.1", &[400, 403, 404, 405]),
    ("POST /mcp HTTP/9.9", UNREADABLE),
    ("POST /mcp", UNREADABLE),
    ("POST  /mcp HTTP/1.1", UNREADABLE),
    ("PO ST /mcp HTTP/1.1", UNREADABLE),
    ("\u{0}POST /mcp HTTP/1.1", UNREADABLE),
    ("PRI * HTTP/2.0", UNREADABLE),
];

/// Framing headers and the body.
pub(super) const FRAMINGS: [(&str, &str, Statuses); 23] = [
    ("Content-Length: 40", PING, LET_IN),
    (
        "Transfer-Encoding: chunked",
        "28\r\nPING\r\n0\r\n\r\n",
        LET_IN,
    ),
    (
        "Transfer-Encoding: chunked",
        "28;a=b\r\nPING\r\n0\r\nX: y\r\n\r\n",
        LET_IN,
    ),
    ("X-None: 1", PING, &[400]),
    ("Content-Length: 0", "", &[400]),
    ("Content-Length: 39", PING, &[400]),
    ("Content-Length: -1", PING, UNREADABLE),
    ("Content-Length: +40", PING, UNREADABLE),
    ("Content-Length: 0x28", PING, UNREADABLE),
    ("Content-Length: 40, 41", PING, UNREADABLE),
    ("Content-Length: 99999999999999999999", PING, UNREADABLE),
    ("Content-Length: 9999999999", PING, &[413]),
    ("Content-Length: 40\r\nContent-Length: 41", PING, UNREADABLE),
    (
        "Transfer-Encoding: chunked",
        "xx\r\nPING\r\n0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked",
        "-1\r\nPING\r\n0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked",
        "fffffffffffffffff\r\nPING",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked",
        "28\r\nPINGPING\r\n0\r\n\r\n",
        UNREADABLE,
    ),
    ("Transfer-Encoding: gzip", PING, UNREADABLE),
    ("Transfer-Encoding: chunked, gzip", PING, UNREADABLE),
    (
        "Content-Encoding: gzip\r\nContent-Length: 40",
        PING,
        &[200, 415],
    ),
    ("Content-Length : 40", PING, UNREADABLE),
    ("X-Bad\u{1}: 1\r\nContent-Length: 40", PING, UNREADABLE),
    ("X-Fold: a\r\n b\r\nContent-Length: 40", PING, UNREADABLE),
];

/// Headers that a valid request has once, or not at all.
pub(super) const HEADS: [(&str, Statuses); 17] = [
    ("Content-Type: application/json; charset=utf-8", LET_IN),
    ("Content-Type: APPLICATION/JSON", LET_IN),
    ("Content-Type: text/plain", &[415]),
    ("Content-Type: application/x-www-form-urlencoded", &[415]),
    (
        "Content-Type: multipart/form-data; boundary=application/json",
        &[415],
    ),
    ("Content-Type: text/plain, application/json", &[415]),
    ("Content-Type:", &[415]),
    ("Accept: text/html", &[406]),
    ("Accept: application/jsonp", &[406]),
    ("MCP-Protocol-Version: 1999-01-01", &[400]),
    ("MCP-Protocol-Version: \u{fc}", &[400]),
    (
        "MCP-Protocol-Version: 2025-11-25\r\nMCP-Protocol-Version: 2025-11-25",
        &[400],
    ),
    ("Mcp-Session-Id: 0123456789abcdef", &[404]),
    ("Mcp-Session-Id:", &[404]),
    ("Mcp-Session-Id: ../../etc/passwd", &[404]),
    ("Mcp-Session-Id: a\r\nMcp-Session-Id: b", &[400]),
    ("Mcp-Session-Id: \u{fc}", &[400]),
];

/// Bodies, and the code of the error; 0: the request is answered.
pub(super) const BODIES: [(&str, i64); 28] = [
    (PING, 0),
    (
        " \r\n{\"jsonrpc\":\"2.0\",\r\n\"id\":\"\\ud83d\\ude00\",\"method\":\"ping\"}\n",
        0,
    ),
    ("", -32_700),
    (" ", -32_700),
    ("null", -32_600),
    ("true", -32_600),
    ("7", -32_600),
    ("\"ping\"", -32_600),
    ("[]", -32_600),
    (
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        -32_600,
    ),
    ("{", -32_700),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}",
        -32_700,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}",
        -32_700,
    ),
    ("{'jsonrpc':'2.0'}", -32_700),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}",
        -32_700,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"ping\"}",
        -32_700,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"ping\"}",
        -32_700,
    ),
    (
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        -32_700,
    ),
    ("\u{0}", -32_700),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}",
        -32_700,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"of/nothing\"}",
        -32_601,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}",
        -32_601,
    ),
    ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32_600),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"method\":\"ping\"}",
        -32_600,
    ),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
        -32_600,
    ),
    ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 0),
    (
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        -32_602,
    ),
    ("{\"id\":1,\"method\":\"ping\"}", -32_602),
];

/// Framings that two parsers may read differently.
pub(super) const HIDING: [(&str, &str, Statuses); 10] = [
    (
        "Content-Length: 40\r\nTransfer-Encoding: chunked",
        "0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 40",
        "0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "28\r\nPING\r\n0\r\n\r\n",
        &[200, 400],
    ),
    (
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "0\r\n\r\n",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding:\u{b}chunked\r\nContent-Length: 0",
        "",
        UNREADABLE,
    ),
    (
        "Transfer-Encoding : chunked\r\nContent-Length: 0",
        "",
        UNREADABLE,
    ),
    (
        "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 0",
        "",
        UNREADABLE,
    ),
    ("Content-Length: 0\r\nContent-Length: 40", "", UNREADABLE),
    ("Content-Length: 0, 0", "", UNREADABLE),
];
