//! Texts that are recognized as secrets, and texts that are not.

use proptest::prelude::*;

use super::{
    find_secrets, find_secrets_in_arguments, mask_address, mask_lines, mask_secrets, names_secret,
    names_secret_argument,
};

/// Checks which parts of a text are masked; secrets are marked with `<` and `>`.
#[track_caller]
fn check(name: Option<&str>, marked: &str) {
    let text = marked.replace(['<', '>'], "");
    let found = find_secrets(&text, name);
    let mut shown = text.clone();
    for it in found.iter().rev() {
        shown.insert(it.range.end, '>');
        shown.insert(it.range.start, '<');
    }
    assert_eq!(shown, marked, "{found:?}");
}

#[test]
fn every_secret_of_an_address_is_found() {
    for marked in [
        "https://x.dev/mcp?token=<abcd1234>&key=<efgh5678>&page=2",
        "https://x.dev/mcp?apiKey=<qwerty>&accessToken=<asdfgh>#session=<zxcvbn>",
        "https://x.dev/mcp?api_key=<0f8fad5b-d9cb-469f-a165-70867728950e>&profile=ada",
        "https://ada:<lovelace>@x.dev:8443/mcp?sig=<a%2Fb%3D%3D>",
        "https://<ghp_0123456789abcdef>@github.com/o/r",
        "https://x-access-token:<ghp_0123456789abcdef>@github.com/o/r",
        "https://<sk_live_0123456789>:@x.dev/mcp",
        "postgres://ada:<p:ss/w?rd>@db:5432/x",
        "mongodb+srv://ada:<lovelace>@a.dev,b.dev/x?authSource=admin",
        "jdbc:postgresql://db/x?user=ada&password=<lovelace>",
        "https://mcp.zapier.dev/api/mcp/s/<MTdjNmUyNDAtZjQ4ZS00ZTYz>/mcp",
        "https://hooks.slack.dev/services/T0/B0/<a1B2c3D4e5F6g7H8i9J0k1L2>",
        "https://x.dev/<0123456789abcdef0123456789abcdef>/sse",
        "redis://:<lovelace>@localhost:6379/0",
        "https://ada:<p@ss/word>@x.dev/mcp?a=b",
        "https://ada:<p@s.s/w@rd>@x.dev",
        "https://x.dev/?a=1;token=<abcd1234>",
    ] {
        check(None, marked);
        check(Some("DATABASE_URL"), marked);
    }
}

#[test]
fn every_form_of_an_argument_is_read() {
    for marked in [
        "--header=Authorization: Bearer <abc123def>",
        "--header=Authorization:Bearer <abc123def>",
        "Authorization: Bearer <abc123def>",
        "authorization: token <abc123def>",
        "X-Api-Key: <k-1234>",
        "Cookie: <a=b; c=d>",
        "--token=<abcdef>",
        "--apiKey=<abcdef>",
        "-Dsecret.key=<abcdef>",
        "GITHUB_TOKEN=<abcdef>",
        "--env=GITHUB_TOKEN=<abcdef>",
        "--config={\"url\":\"https://x.dev?key=<abcd>\",\"headers\":{\"Authorization\":\"Bearer <abcdef>\",\"Accept\":\"a\"}}",
        r#"{\"apiKey\": \"<abcdef>\", \"name\": \"x\"}"#,
        r#"["--token", "<abcdef>", "--name", "abcdef"]"#,
        "Server=db;User Id=sa;Password=<lovelace>;Encrypt=true",
        "host=db user=ada password=<lovelace> dbname=x",
        "export A=b TOKEN=<abcdef> && run --api-key <abcdef> --name ada",
        "curl -H \"Authorization: Bearer <abc123def>\" https://ada:<pw>@x.dev",
        "ada:<lovelace>@db.example.com:5432/x",
        "<sk-proj-0123456789ab>",
        "<AKIA0123456789ABCDEF>",
        "<a8Kd03mZq71xPw92Lr5tVb6Y>",
        "--auth=ada:<lovelace>@x.dev",
    ] {
        if marked.starts_with("--auth=") {
            check(None, "--auth=<ada:lovelace@x.dev>");
        } else {
            check(None, marked);
        }
    }
    let arguments = [
        "--api-key",
        "hunter2",
        "-H",
        "X-Token: abcd",
        "--name",
        "hunter2",
        "-e",
        "KEY=abcdef",
    ];
    let found = find_secrets_in_arguments(arguments);
    let texts: Vec<&str> = (arguments.iter().zip(&found))
        .flat_map(|(text, found)| found.iter().map(|it| &text[it.range.clone()]))
        .collect();
    assert_eq!(texts, ["hunter2", "abcd", "abcdef"]);
    let names: Vec<&str> = found
        .iter()
        .flatten()
        .filter_map(|it| it.name.as_deref())
        .collect();
    assert_eq!(names, ["api-key", "X-Token", "KEY"]);
}

#[test]
fn a_short_option_has_a_secret_if_its_value_can_be_nothing_else() {
    for marked in [
        "mysql -u root -p <Hunter2x>",
        "redis-cli -p<s3cr$t!x>",
        "x -k <Zx81-Qq>",
        "npx -p @scope/pkg@1.2.3 -p typescript@5 run",
        "x -p 8080 -p8080 -p 127.0.0.1:8080:80 -p python3.12 -k -p ./Dir2 -p ${PASS1} -p production",
    ] {
        check(None, marked);
        let words: Vec<String> = marked
            .replace(['<', '>'], "")
            .split(' ')
            .map(str::to_owned)
            .collect();
        let found = find_secrets_in_arguments(words.iter().map(String::as_str));
        assert_eq!(
            found.concat().len(),
            marked.matches('<').count(),
            "{marked}"
        );
    }
}

#[test]
fn ordinary_texts_are_no_secrets() {
    for text in [
        "--port=8080",
        "--max-tokens=4096",
        "--token-limit=200000",
        "--key-file=/home/ada/.ssh/id_ed25519",
        "--key=/etc/ssl/private/server.key",
        "TOKEN=${TOKEN}",
        "Authorization: Bearer ${secret:git.TOKEN}",
        "--header=X-Api-Key: ${API_KEY:-none}",
        "https://${USER}:${PASSWORD}@x.dev/?key=${secret:a}&token=${T}",
        "https://x.dev/projects/0f8fad5b-d9cb-469f-a165-70867728950e/mcp?read_only=true",
        "--project-id=0f8fad5b-d9cb-469f-a165-70867728950e",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "postgres://ada@db:5432/x",
        "https://[::1]:8080/mcp",
        "git+https://github.com/o/r@0123456789abcdef0123456789abcdef01234567",
        "ghcr.io/o/r:1.2@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "node:20@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "@modelcontextprotocol/server-filesystem@2025.11.25",
        "npm:left-pad@1.3.0",
        "/home/ada/projects/my-very-long-project-name-2024",
        "C:\\Users\\ada\\key.pem",
        "--auth=oauth",
        "AUTH_MODE=development",
        "TOKEN_URL=https://x.dev/token",
        "--monkey=banana123",
        "some words: and more of them",
        "mcp/server:latest",
        "read the API Key of Brave",
        "mailto:ada@example.com",
        "1BxiMVs0",
        "",
    ] {
        check(None, text);
    }
    check(Some("SSH_KEY"), "/home/ada/.ssh/id");
    check(Some("AUTHOR"), "ada lovelace");
    check(
        Some("SPREADSHEET_ID"),
        "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms",
    );
    check(Some("API_TOKEN"), "<abcdef>");
    check(
        Some("AWS_SECRET_ACCESS_KEY"),
        "</a8Kd03mZq71xPw92Lr5tVb6Y+abc>",
    );
    check(Some("PASSWORD"), "<correct horse battery staple>");
}

#[test]
fn names_tell() {
    for name in [
        "apiKey",
        "--api-key",
        "X-API-Key",
        "accesstoken",
        "API_KEY2",
        "clientSecret",
        "db.password",
        "PAT",
    ] {
        assert!(names_secret(name), "{name}");
    }
    for name in [
        "monkey",
        "max_tokens",
        "KEY_FILE",
        "tokenUrl",
        "author",
        "pattern",
        "compass",
        "keyboard",
    ] {
        assert!(!names_secret(name), "{name}");
    }
    for name in ["api_key", "Tokens", "connectionString", "pass", "auth"] {
        assert!(names_secret_argument(name), "{name}");
    }
    for name in ["key", "issueKey", "tokenUrl", "author"] {
        assert!(!names_secret_argument(name), "{name}");
    }
}

#[test]
fn a_mistyped_address_keeps_nothing_that_may_be_a_password() {
    for (text, masked) in [
        (
            "htps://ada:hunter2@x.dev/mcp?token=abc",
            "htps://***@x.dev/mcp?***",
        ),
        ("https//ada:hunter2@x.dev", "***@x.dev"),
        ("https:/ada:hunter2@x.dev", "https:/***@x.dev"),
        ("ada:hunter2@x.dev/mcp", "***@x.dev/mcp"),
        ("ftp://ada:hun?ter2@x.dev", "ftp://***@x.dev"),
        ("ws://x.dev/a#token=abc", "ws://x.dev/a#***"),
        ("x.dev/ghp_0123456789abcdef", "x.dev/***"),
        ("example.com:80", "example.com:80"),
        ("https://a b", "https://a b"),
    ] {
        assert_eq!(mask_address(text), masked);
    }
}

#[test]
fn lines_of_any_file_are_masked() {
    let check = |text: &str, masked: &str| assert_eq!(mask_lines(text).join("\n"), masked);
    check(
        r#"  "API_KEY": "abcdef", // mine"#,
        r#"  "API_KEY": "***", // mine"#,
    );
    check(
        r#""args": ["--api-key", "abcdef", "x"]"#,
        r#""args": ["--api-key", "***", "x"]"#,
    );
    check(
        "\"args\": [\n  \"--api-key\",\n  \"abcdef\"\n]",
        "\"args\": [\n  \"--api-key\",\n  \"***\"\n]",
    );
    check("token = 'abc-def'", "token = '***'");
    check(
        "password = \"correct horse battery staple\"",
        "password = \"***\"",
    );
    check(
        r#""Authorization": "Bearer abcdef""#,
        r#""Authorization": "Bearer ***""#,
    );
    check("# text ghp_0123456789ab text", "# text *** text");
    check(
        "# Needs the variable API_KEY: Brave API Key.",
        "# Needs the variable API_KEY: Brave API Key.",
    );
    check(
        r#"url = "https://x.dev/?a=b&key=${secret:far.key}&token=abcdef""#,
        r#"url = "https://x.dev/?a=b&key=${secret:far.key}&token=***""#,
    );
    check(
        r#""API_KEY": "${API_KEY}", "name": "x""#,
        r#""API_KEY": "${API_KEY}", "name": "x""#,
    );
    check(
        r#""numStartups": 5, "tokens": true"#,
        r#""numStartups": 5, "tokens": true"#,
    );
    check(
        "env = { TOKEN = \"${secret:a.TOKEN}\", KEY = \"abcdef\" }",
        "env = { TOKEN = \"${secret:a.TOKEN}\", KEY = \"***\" }",
    );
    check(
        "env:\n  API_KEY: abc def\n  MODE: fast",
        "env:\n  API_KEY: ***\n  MODE: fast",
    );
    check(
        "args:\n  - --token\n  - abcdef\n  - x",
        "args:\n  - --token\n  - ***\n  - x",
    );
    check(
        "  key: |\n    abc\n    def\n  name: x",
        "  key: |\n    ***\n    ***\n  name: x",
    );
    check(
        "key = \"\"\"abc\ndef\n\"\"\"\nname = \"x\"",
        "key = \"\"\"***\n***\n***\nname = \"x\"",
    );
    check(
        r#""headers": "{\"Authorization\": \"Bearer abcdef\"}""#,
        r#""headers": "{\"Authorization\": \"Bearer ***\"}""#,
    );
    check(
        "[servers.secret-notes]\ncommand = \"npx\"",
        "[servers.secret-notes]\ncommand = \"npx\"",
    );
    check("note: it's fine", "note: it's fine");
}

proptest! {
    /// The name indicates a secret, and the value cannot be a path, a number or a keyword.
    #[test]
    fn no_value_of_a_telling_name_survives(
        value in "[a-zA-Z0-9]{5,12}[!%^*_+x][a-zA-Z0-9]{3,20}",
        form in 0..9_usize,
    ) {
        let forms = [
            format!("--api-key={value}"),
            format!("--header=Authorization: Bearer {value}"),
            format!("https://x.dev/a?b=c&token={value}"),
            format!("https://ada:{value}@x.dev/a"),
            format!("{{\"a\": {{\"password\": \"{value}\"}}}}"),
            format!("a=b;Password={value};c=d"),
            format!("run --secret {value} --name x"),
            format!("X-Auth-Token: {value}"),
            format!("sh -c 'TOKEN={value} run'"),
        ];
        let masked = mask_secrets(&forms[form], None);
        prop_assert!(!masked.contains(&value), "{masked}");
    }

    /// The ranges are valid for any text and do not overlap.
    #[test]
    fn any_text_is_read(text in "\\PC{0,60}", name in "[A-Z_]{0,8}") {
        let found = find_secrets(&text, Some(&name));
        let mut at = 0;
        for it in found {
            prop_assert!(it.range.start >= at && text.get(it.range.clone()).is_some());
            at = it.range.end;
        }
        prop_assert_eq!(mask_lines(&text).len(), text.lines().count());
        let _ = mask_address(&text);
    }
}
