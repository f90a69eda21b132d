package cli

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

const stopSteps = `conversations:
  - match: what now
    steps: [{text: The second answer.}]
  - match: slow
    steps: [{text: The first half of the answer and the rest, chunk: 25, chunk_delay: 1h}]
`

// personSaid returns what the person said in the last run's session.
func (c *screenChat) personSaid() string {
	c.t.Helper()
	list, err := c.host.Runs().List(c.t.Context(), engine.Filter{})
	if err != nil || len(list) == 0 {
		c.t.Fatalf("%v, %v", list, err)
	}
	said, err := c.host.Sessions().Transcripts().Messages(c.t.Context(), list[0].Session)
	if err != nil {
		c.t.Fatal(err)
	}
	var texts []string
	for _, m := range said {
		if m.Role == tenon.RoleUser {
			texts = append(texts, m.Text())
		}
	}
	return strings.Join(texts, "|")
}

// TestUX4_StopGivesBack checks that messages which the model has not received when an answer is stopped return to the
// input, and that the next question does not send them. /retry asks a stopped question again.
func TestUX4_StopGivesBack(t *testing.T) {
	c := openChat(t, 100, 30, stopSteps)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("slow please\r")
	c.awaits("The first half of the ans")
	c.types("steer this way\r")
	c.awaits("» queued: steer this way")
	c.types("and that way\r")
	c.awaits("» queued: and that way")
	c.awaitsMessages(2)
	c.types("a draft\x03")
	c.awaits("/retry asks it again", "> steer this way\n  and that way\n  a draft")
	c.types("\x15\x7f\x15\x7f\x15and what now\r")
	c.awaits("The second answer.")
	if got := c.personSaid(); got != "slow please|and what now" {
		t.Errorf("the model got %q", got)
	}
	c.types("slow again\r")
	c.awaits("> slow again", "Ctrl-C stops")
	for strings.Count(c.awaits("The first half of the ans"), "The first half of the ans") < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	c.types("\x03")
	for strings.Count(c.awaits("/retry asks it again"), "/retry asks it again") < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	c.types("/retry\r")
	for strings.Count(c.awaits("> slow again"), "> slow again") < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	c.awaits("Ctrl-C stops")
	c.types("\x03")
	for strings.Count(c.awaits("/retry asks it again"), "/retry asks it again") < 3 {
		time.Sleep(10 * time.Millisecond)
	}
	if got := c.personSaid(); got != "slow please|and what now|slow again|slow again" {
		t.Errorf("the model got %q", got)
	}
	c.leaves()
}

// TestUX4_RemoteStopGivesBack checks the same for a chat with the tenon serve at --remote.
func TestUX4_RemoteStopGivesBack(t *testing.T) {
	c := openChat(t, 100, 30, stopSteps)
	srv := httptest.NewServer(httpapi.Handler(c.host))
	defer srv.Close()
	defer srv.CloseClientConnections() // a chat that fails may still follow its run
	client, err := httpapi.NewRemote(srv.URL, tenon.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	c.far = &far{Client: client}
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("slow please\r")
	c.awaits("The first half of the ans")
	c.types("steer this way\r")
	c.awaits("» queued: steer this way")
	c.awaitsMessages(1)
	c.types("\x03")
	c.awaits("/retry asks it again", "> steer this way")
	c.types("\x15and what now\r")
	c.awaits("The second answer.")
	if got := c.personSaid(); got != "slow please|and what now" {
		t.Errorf("the model got %q", got)
	}
	c.leaves()
}

// TestUX4_LeaveUnsent checks that a person who leaves during an answer is told which messages did not reach the model.
func TestUX4_LeaveUnsent(t *testing.T) {
	for name, keys := range map[string]string{"exit": "/exit\r", "Ctrl-C twice": "\x03\x03"} {
		t.Run(name, func(t *testing.T) {
			c := openChat(t, 100, 30, stopSteps)
			c.start(&asking{})
			c.awaits("Ask something.")
			c.types("slow please\r")
			c.awaits("The first half of the ans")
			c.types("steer this way\r")
			c.awaits("» queued: steer this way")
			c.awaitsMessages(1)
			if _, err := c.control.WriteString(keys); err != nil {
				t.Fatal(err)
			}
			if err := <-c.status; err != nil {
				t.Fatal(err)
			}
			c.awaits("not sent: steer this way", "continue with: tenon chat -s")
			if got := c.personSaid(); got != "slow please" {
				t.Errorf("the next question sends %q", got)
			}
		})
	}
}

// awaitsMessages waits until the run has recorded n messages.
func (c *screenChat) awaitsMessages(n int) {
	c.t.Helper()
	for range 3000 {
		run, err := c.host.Runs().Get(c.t.Context(), "-1")
		if err != nil {
			c.t.Fatal(err)
		}
		events, err := c.host.Runs().Open(run.ID).Journal(c.t.Context(), 0, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		got := slices.DeleteFunc(events, func(e tenon.Event) bool { return e.Kind != "message" })
		if len(got) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal("the run has not recorded the messages")
}

// TestUX4_WithdrawWaiting checks that a run which waits without a process withdraws its messages, too.
func TestUX4_WithdrawWaiting(t *testing.T) {
	c := openChat(t, 100, 30, screenSteps)
	s, err := c.host.Start(t.Context(), host.Question{Text: "write it"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		run, err := c.host.Runs().Get(t.Context(), s.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if run.State == tenon.RunInputRequired {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := c.host.Runs().Steer(t.Context(), s.Run.ID, "in Celsius", "ann"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds a run that has ended
		if err := host.Withdraw(t.Context(), c.host, s.Run.ID, "enough"); err != nil {
			t.Fatal(err)
		}
	}
	run, err := c.host.Runs().Get(t.Context(), s.Run.ID)
	if err != nil || run.State != tenon.RunCancelled {
		t.Fatalf("%+v, %v", run, err)
	}
	if got := c.personSaid(); got != "write it" {
		t.Errorf("the person said %q", got)
	}
}

// TestUX3_ModeConfirmed checks that one key does not switch to the mode that allows all calls.
func TestUX3_ModeConfirmed(t *testing.T) {
	c := openChat(t, 100, 30, screenSteps)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("\x1b[Z")
	c.awaits("Shift-Tab again allows all calls of the next questions; another key goes back")
	c.types("write it\r")
	if screen := c.awaits("approval required"); strings.Contains(screen, "allows all calls") {
		t.Errorf("one key allows all calls:\n%s", screen)
	}
	c.decides("n", "the reason:")
	c.types("\r")
	c.awaits("It is written")
	c.types("\x1b[Z")
	c.awaits("Shift-Tab again")
	time.Sleep(time.Second) // a key that is held down does not confirm
	c.types("\x1b[Z")
	for range 3000 {
		if screen := c.awaits("allows all calls"); !strings.Contains(screen, "Shift-Tab again") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.types("\x1b[Z") // back, with one key
	for range 3000 {
		if !strings.Contains(c.awaits("> "), "allows all calls") {
			c.leaves()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the mode is not switched off")
}

// TestUX4_Help checks that /help shows its beginning, and that commands of other programs are answered with ours.
func TestUX4_Help(t *testing.T) {
	c := openChat(t, 80, 24, screenSteps)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("/help\r")
	c.awaits("/tools      what the agent can call", "lines below · Ctrl-End follows")
	for typed, told := range map[string]string{"/clear": "use /new", "/q": "use /exit", "/models": "use /model",
		"/history": "use /sessions", "/reset": "use /new", "/add main.go": "use @FILE in a message"} {
		c.types(typed + "\r")
		c.awaits("there is no " + typed + "; " + told)
	}
	c.leaves()
}
