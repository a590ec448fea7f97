//! A server that shows its own secret in everything that the proxy keeps of it.

use super::*;

/// Refuses `server/discover` unless `$1` is `new`.
const LEAKY: &str = r#"
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    about="\"serverInfo\":{\"name\":\"any $TOKEN\",\"version\":\"$TOKEN\"},\"instructions\":\"Send $TOKEN.\",
        \"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{}}"
    answer=
    case $line in
    *'"server/discover"'*) [ "$1" = new ] && answer="\"resultType\":\"complete\",$about,
        \"supportedVersions\":[\"2026-07-28\"],\"ttlMs\":0,\"cacheScope\":\"private\"" ;;
    *'"initialize"'*) [ "$1" = old ] && answer="\"protocolVersion\":\"2025-11-25\",$about" ;;
    *'"tools/list"'*) answer="\"resultType\":\"complete\",\"tools\":[{\"name\":\"send\",
        \"description\":\"Sends with $TOKEN.\",\"inputSchema\":{\"type\":\"object\",
        \"properties\":{\"to\":{\"type\":\"string\",\"default\":\"$TOKEN\"}}}}]" ;;
    *'"prompts/list"'*) answer="\"resultType\":\"complete\",
        \"prompts\":[{\"name\":\"ask\",\"description\":\"With $TOKEN.\"}]" ;;
    *'"resources/list"'*) answer="\"resultType\":\"complete\",
        \"resources\":[{\"name\":\"page\",\"uri\":\"x:page\",\"title\":\"$TOKEN\"}]" ;;
    esac
    case $line in *'"id":'*)
        case $answer in
        '') echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
        *) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$answer}}" | tr -d '\n'; echo ;;
        esac ;;
    esac
done
"#;

#[tokio::test]
async fn a_survey_shows_no_secret_that_the_server_was_given() {
    for revision in ["new", "old"] {
        let literal = |text: &str| Template::parse(&printable::escape_template(text)).unwrap();
        let launch = Launch::Child {
            command: literal("sh"),
            args: ["-c", LEAKY, "sh", revision].map(literal).into(),
            env: vec![("TOKEN".into(), literal("f81c2d9e77"))],
            cwd: None,
        };
        let spec = ServerSpec::new(name(), launch);
        let fleet = Fleet::new(vec![spec], Surroundings::default());
        let survey = fleet.survey(&name()).await.unwrap();
        assert_eq!(
            survey.about.spoken.revision.is_stateless(),
            revision == "new"
        );
        assert_eq!(survey.about.instructions.as_deref(), Some("Send ***."));
        assert_eq!(survey.tools.len(), 1);
        let kept = format!("{survey:?}");
        for text in ["Sends with ***.", "With ***.", "x:page"] {
            assert!(kept.contains(text), "{revision}: {text} in {kept}");
        }
        assert!(!kept.contains("f81c2d9e77"), "{revision}: {kept}");
        fleet.stop().await;
    }
}
