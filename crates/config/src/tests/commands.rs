//! Command-line programs as tools.

use fleet::Launch;

use super::{load_text, mistakes::check};

const RG: &str =
    "[commands.rg]\ncommand = [\"~/bin/rg\", \"{pattern}\"]\ntags = [\"search code\"]\n";

#[test]
fn commands_are_one_server_with_its_own_settings() {
    let settings =
        "[servers.commands]\ntimeout_s = 7\nenv = { A = \"b\" }\noverlay.rg.tags = [\"text\"]\n";
    for text in [format!("{RG}{settings}"), format!("{settings}{RG}")] {
        let config = load_text(&text, &[]).unwrap();
        let server = &config.gateway.servers[0];
        assert_eq!(server.spec.name.as_str(), "commands");
        assert_eq!(server.spec.timeout.as_secs(), 7);
        assert_eq!(server.rules.overlays["rg"].tags, ["text", "search code"]);
        let Launch::Commands(set) = &server.spec.launch else {
            panic!("{:?}", server.spec.launch);
        };
        assert_eq!((set.tools.len(), set.env.len()), (1, 1));
        assert!(format!("{:?}", set.tools).contains("/home/ada/bin/rg"));
        assert!(!format!("{:?}", server.rules).contains("/home/ada"));
    }
    let variable = [("PROXY_SERVERS__COMMANDS__TIMEOUT_S", "9")];
    let config = load_text(RG, &variable).unwrap();
    assert_eq!(config.gateway.servers[0].spec.timeout.as_secs(), 9);
    // Without commands, the name is free.
    load_text("[servers.commands]\ncommand = \"x\"\n", &[]).unwrap();
}

#[test]
fn a_mistake_of_a_command_has_its_place() {
    check(
        &format!("{RG}[servers.commands]\ncommand = \"x\""),
        "5:1: servers.commands.command: has no effect with `[commands.NAME]`\n    hint: remove it",
    );
    check(
        "[commands.rg]\ncommand = [\"rg\", \"{a}\"]\nargs = { b = \"string\" }",
        "1:11: commands.rg: `args.b`: there is no `{b}`",
    );
    check(
        "[commands.rg]\ncomand = [\"rg\"]",
        "2:1: commands.rg.comand: unknown key\n    hint: did you mean `command`?",
    );
    check(
        "[commands.rg]\ndescription = \"x\"",
        "1:11: commands.rg: no program: write `command = [\"PROGRAM\", ...]`",
    );
}
