//! The plugin for Claude Code in this repository.

use serde_json::{Value, json};

fn read(path: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../").to_owned() + path;
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_plugin_starts_this_program_and_has_its_version() {
    let plugin = read("config/claude-plugin/.claude-plugin/plugin.json");
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    let servers = &read("config/claude-plugin/.mcp.json")["mcpServers"];
    assert_eq!(servers["proxy"]["command"], "tool-proxy");
    assert_eq!(servers["proxy"]["args"], json!(["serve"]));
    let market = read(".claude-plugin/marketplace.json");
    assert_eq!(market["plugins"][0]["source"], "./config/claude-plugin");
    assert_eq!(market["plugins"][0]["name"], plugin["name"]);
}
