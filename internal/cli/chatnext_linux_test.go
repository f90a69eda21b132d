package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
)

// TestUX4_StatusBefore checks that the status line names the agent and the model of the next question before the first
// answer, also after /agent, and that lists can be read while an approval waits.
func TestUX4_StatusBefore(t *testing.T) {
	const steps = `conversations:
  - match: begin
    steps:
      - calls: [{name: write, arguments: {text: one}}]
      - {text: Written.}
`
	c := openChatOf(t, 110, 30, steps, map[string]model.Config{"mine": {}, "second": {}})
	c.host.Service().Info().Config.Agents = map[string]agent.Config{"default": {Model: "mine"},
		"writer": {Model: "second"}}
	c.start(&asking{})
	c.awaits("Ask something.", "default · mine")
	c.types("/agent writer\r")
	c.awaits("the next question goes to agent writer", "writer · second")
	c.types("/agent default\r")
	c.awaits("default · mine")
	c.types("begin\r")
	c.awaits("approval required", "default · mine")
	for _, text := range []string{"/servers\r", "/tools\r", "/allowed\r"} {
		if _, err := c.control.WriteString(text); err != nil {
			t.Fatal(err)
		}
		screen := c.awaits(map[string]string{"/servers\r": "disk  ready", "/tools\r": "disk.write",
			"/allowed\r": "no tool is allowed for later calls"}[text])
		if strings.Contains(screen, "wait for the answer") {
			t.Errorf("%q has to wait:\n%s", text, screen)
		}
	}
	c.decides("y", "Written.")
	c.leaves()
}

// TestUX10_UndoSteered checks that /undo takes back a question with the messages that were sent during its answer.
func TestUX10_UndoSteered(t *testing.T) {
	c := openChat(t, 100, 30, `conversations:
  - match: first
    steps: [{text: The first answer.}]
  - match: begin
    steps:
      - calls: [{name: write, arguments: {text: one}}]
      - {text: Only ten then.}
`)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("first\r")
	c.awaits("The first answer.")
	c.types("begin\r")
	c.awaits("approval required")
	c.types("only ten\r")
	c.awaits("» queued: only ten")
	c.decides("y", "Only ten then.")
	c.types("/undo\r")
	screen := c.awaits("this is the copy", "The first answer.")
	if strings.Contains(screen, "begin") || strings.Contains(screen, "only ten") {
		t.Errorf("a part of the question is left:\n%s", screen)
	}
	c.types("/resume\r")
	c.awaits("a conversation to continue")
	c.types("\x1b")
	for strings.Contains(c.awaits(""), "a conversation to continue") { // Esc and a letter that follows at once are one key
		time.Sleep(10 * time.Millisecond)
	}
	c.leaves()
}
