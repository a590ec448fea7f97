class ToolProxy < Formula
  desc "@DESCRIPTION@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@BREWS@

  def install
    bin.install "tool-proxy", "proxy"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/tool-proxy.bash" => "tool-proxy"
    zsh_completion.install "completions/_tool-proxy"
    fish_completion.install "completions/tool-proxy.fish"
    doc.install "README.md", "THIRD-PARTY-NOTICES.txt", "config"
  end

  test do
    assert_match "execute_dynamic_tool", shell_output("#{bin}/tool-proxy demo")
  end
end
