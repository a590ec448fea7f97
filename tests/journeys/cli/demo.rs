//! `proxy demo` plays a whole session without any other program.

use journeys::house::House;

use crate::programs;

#[tokio::test]
async fn the_demo_needs_no_configuration_and_leaves_nothing() {
    let house = House::without_config(&programs());
    let mut command = house.command(["demo"]);
    command.env_remove("PROXY_CONFIG").env("PATH", "");
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}\n{stderr}");
    for word in [
        "search_tools",
        "describe_tool",
        "execute_dynamic_tool",
        "unknown_tool",
        "tokens",
        "[cut: ",
        "error invalid_input: title: missing",
        "error server_unavailable: notes: it exited with code 1",
    ] {
        assert!(said.contains(word), "`{word}` is missing:\n{said}");
    }
    assert_eq!(house.all_gone().await, Ok(()));
}
