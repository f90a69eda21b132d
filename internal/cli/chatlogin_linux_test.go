package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// TestUX10_Login checks that a person without a model saves a key in the conversation. The key is hidden, no key
// is in the history, and the next question goes to the provider's model.
func TestUX10_Login(t *testing.T) {
	c := openChat(t, 100, 30, "steps: [{text: An answer.}]")
	for k, v := range map[string]string{"HOME": c.state, "XDG_STATE_HOME": c.state, "TENON_KEYRING": "off",
		"OPENAI_API_KEY": ""} {
		t.Setenv(k, v)
	}
	if err := os.Unsetenv("OPENAI_API_KEY"); err != nil { // Setenv restores it
		t.Fatal(err)
	}
	c.env = map[string]string{"OPENAI_API_KEY": "sk-typed-1"} // what the kept key becomes for the detection
	c.start(&asking{})
	c.awaits("Ask something.", "/login openai")
	c.types("/login opnai\r")
	c.awaits("there is no provider 'opnai' with a key: name one of anthropic, openai")
	c.types("/login openai sk-shown\r")
	c.awaits("takes the name of a provider only")
	c.types("/login\r")
	c.awaits("a provider whose API key you have", "OPENAI_API_KEY")
	c.types("openai\r")
	c.awaits("API key of openai (hidden")
	for _, key := range []string{"\x1b", "\x03"} { // Esc and Ctrl-C cancel the question, and nothing else
		c.types("sk-wrong-1" + key)
		c.awaits("no key was kept")
		c.types("/login openai\r")
		c.awaits("API key of openai (hidden")
	}
	c.types("sk-typed-1")
	c.awaits("••••••••••")
	c.types("\r")
	screen := c.awaits("the key of openai is kept for all projects; the next question goes to openai/")
	if strings.Contains(screen, "sk-typed-1") {
		t.Errorf("the key is shown:\n%s", screen)
	}
	if !host.KeysOf(host.Config{}).Has("openai") {
		t.Error("the key is not kept")
	}
	c.leaves()
	b, err := os.ReadFile(filepath.Join(c.state, "tenon", "chat-history.jsonl"))
	if err != nil || string(b) != "\"/login\"\n" {
		t.Errorf("the history has %q, %v", b, err)
	}
}

// TestUX4_Steer checks that a message that is written during an answer waits visibly and reaches the model with its
// next request.
func TestUX4_Steer(t *testing.T) {
	c := openChat(t, 100, 30, `conversations:
  - match: begin
    steps:
      - calls: [{name: write, arguments: {text: one}}]
      - {text: Only ten then.}
`)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("begin\r")
	c.awaits("approval required")
	c.types("only ten\r")
	c.awaits("» queued: only ten")
	c.decides("y", "Only ten then.")
	list, err := c.host.Runs().List(t.Context(), engine.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	said, err := c.host.Sessions().Transcripts().Messages(t.Context(), list[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range said {
		if m.Role == tenon.RoleUser {
			texts = append(texts, m.Text())
		}
	}
	if got := strings.Join(texts, "|"); got != "begin|only ten" {
		t.Errorf("the person said %q", got)
	}
	c.leaves()
}

// TestUX4_Editor checks that Ctrl-G opens the input in an editor and takes the edited text back.
func TestUX4_Editor(t *testing.T) {
	c := openChat(t, 100, 30, `conversations:
  - {match: "first line\nsecond line", steps: [{text: Both lines arrived.}]}
  - steps: [{text: Something else arrived.}]
`)
	editor := filepath.Join(t.TempDir(), "edit")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'first line\\nsecond line\\n' > \"$1\"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	c.env = map[string]string{"EDITOR": editor}
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("draft")
	c.awaits("> draft")
	c.types("\x07")
	c.awaits("> first line", "  second line")
	c.types("\r")
	c.awaits("Both lines arrived.")
	c.leaves()
}

// TestUX4_DroppedImage checks that a picture which is dropped on the terminal is attached to the message.
func TestUX4_DroppedImage(t *testing.T) {
	c := openChat(t, 110, 30, "steps: [{text: I see it.}]")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("my pic.png", []byte("\x89PNG\r\n\x1a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("see \x1b[200~my\\ pic.png\x1b[201~")
	c.awaits(`> see @"my pic.png"`)
	c.types("\r")
	c.awaits("attached my pic.png, 8 bytes", "I see it.")
	c.leaves()
}
