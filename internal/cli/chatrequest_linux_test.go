package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

const requestSteps = `conversations:
  - match: form
    steps: [{calls: [{name: ask_form, arguments: {message: "Who\e[2J are you?"}}]}, {text: The form was answered.}]
  - match: page
    steps: [{calls: [{name: ask_url, arguments: {url: "https://accounts.example.org/authorize?state=f1a2"}}]}, {text: The page was answered.}]
  - match: sample
    steps: [{calls: [{name: sample, arguments: {prompt: The capital of France?}}]}, {text: The model was asked.}]
  - match: several
    steps: [{calls: [{name: ask_mixed, arguments: {}}]}, {text: All was answered.}]
  - match: briefly
    steps: [{calls: [{name: ask_form, arguments: {give_up_ms: 1500}}]}, {text: It was taken back.}]
  - match: capital
    steps: [{text: Paris}]
`

// openAsking opens a chat with tenon's test server, which asks questions during its calls.
func openAsking(t *testing.T, protocol string) *screenChat {
	t.Helper()
	c := openChat(t, 100, 40, requestSteps)
	if err := c.host.Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(requestSteps), 0o600); err != nil {
		t.Fatal(err)
	}
	c.host, err = host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Interactive: true,
		Config: &config.Config{Servers: map[string]servers.Config{"demo": {Command: exe, Args: []string{"testserver", "--stdio"},
			Protocol: protocol, Sampling: servers.AnswerAsk, Roots: []string{dir}}}}})
	if err != nil {
		t.Fatal(err)
	}
	c.start(&asking{yes: true})
	c.awaits("Ask something.")
	return c
}

// presses presses a key that answers a question, after the half second in which keys are ignored.
func (c *screenChat) presses(key string) {
	time.Sleep(time.Second)
	c.types(key)
}

// restarts begins another conversation. The program takes the command only after the run, and keeps it in the input until
// then.
func (c *screenChat) restarts() {
	c.types("/new\r")
	for range 300 {
		time.Sleep(100 * time.Millisecond)
		if !strings.Contains(strings.Join(c.screen.Lines(), "\n"), "wait for the answer") {
			return
		}
		c.types("\r")
	}
	c.t.Fatal("the run does not end")
}

// TestUX3_ServerForms answers forms, pages and requests for the model of a real server in the chat program, in both eras
// of the protocol. The server returns the answer that it received.
func TestUX3_ServerForms(t *testing.T) {
	for name, protocol := range map[string]string{"2025": "2025-11-25", "2026": "2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			c := openAsking(t, protocol)
			c.types("\x0f") // unfolds calls, so that the answers are shown

			c.types("the form\r")
			screen := c.awaits("the server asks for input", "server     demo", "tool       ask_form", `| Who\u001b[2J are you?`,
				"asks for   name, age, colour", "[a]nswer")
			if strings.Contains(screen, "plain lines") {
				t.Errorf("the form is not asked in the program:\n%s", screen)
			}
			c.presses("a")
			c.awaits(">!Your name", "Your name (a text, at least 2 characters):")
			c.presses("A\r") // letters that follow a at once would begin a message
			c.awaits("Your name must have at least 2 characters")
			c.types("da\r")
			c.awaits("age (a whole number, at least 0, at most 150, may be empty)")
			c.types("old\r")
			c.awaits("age must be a whole number")
			c.types("\x1536\r")
			c.awaits("colour (one of red, green; Left and Right choose)", "> green")
			c.types("\x1b[D\r") // Left
			c.awaits("The form was answered.", `"action":"accept"`, `"name":"Ada"`, `"age":36`, `"colour":"red"`)

			c.types("the form once more\r")
			c.awaits("the server asks for input")
			c.presses("d")
			c.awaits(`{"action":"decline"}`, "the question of the server was not answered")
			c.types("the form, please\r")
			c.awaits("the server asks for input")
			c.presses("c")
			c.awaits(`{"action":"cancel"}`)

			c.restarts()
			c.types("the page\r")
			c.awaits("the server wants you to visit a page", "page       https://accounts.example.org/authorize?state=f1a2",
				"leads to   accounts.example.org", "| Sign in there, please.", "[y]es, I opened it")
			c.presses("y")
			c.awaits("The page was answered.", `{"action":"accept"}`)

			c.restarts()
			c.types("a sample\r")
			c.awaits("the server wants an answer of the model", "| Be brief.", "| The capital of France?", "100 tokens at most")
			c.presses("y")
			c.awaits("The model was asked.", "Paris")
			if protocol == "2026-07-28" {
				c.restarts()
				c.types("several\r")
				c.awaits("the server wants an answer of the model (1 of 2)")
				c.presses("y")
				c.awaits("the server asks for input (2 of 2)")
				c.presses("a")
				c.awaits("Your name (a text")
				c.presses("Ada\t\t\r")
				c.awaits("All was answered.", `"name":"Ada"`, "Paris")
			}
			c.leaves()
		})
	}
}

// TestUX3_FormEnds checks that a form closes when the server takes its question back, and that what the person was
// typing answers nothing.
func TestUX3_FormEnds(t *testing.T) {
	c := openAsking(t, "2025-11-25")
	c.types("briefly\r")
	c.awaits("the server asks for input")
	c.presses("a")
	c.awaits("Your name (a text")
	c.presses("Ad")
	c.awaits("It was taken back.")
	c.leaves()
}
