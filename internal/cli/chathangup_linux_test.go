package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/pty"
)

// TestUX4_Hangup closes the terminal of a conversation in mid-answer, as a lost ssh connection does. The process ends
// with the text so far in its journal, and the run can be resumed.
func TestUX4_Hangup(t *testing.T) {
	if underNohup {
		t.Skip("SIGHUP is ignored")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	steps := "steps: [{text: The first half of the answer and the rest of it, chunk: 25, chunk_delay: 1h}]\n"
	for name, text := range map[string]string{"tenon.yaml": "version: 1\n", "steps.yaml": steps} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	control, terminal, err := pty.Open(80, 24)
	if err != nil {
		t.Skip(err)
	}
	screen, read := pty.NewTerminal(80, 24), make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(screen, control) }()
	cmd := exec.Command("tenon", "chat", "-c", "tenon.yaml", "--model", "script:steps.yaml")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "TENON_NO_PROBE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_ = terminal.Close()
	await := func(text string) {
		t.Helper()
		for range 3000 {
			if strings.Contains(strings.Join(screen.Lines(), "\n"), text) {
				return
			}
			select {
			case err := <-over:
				t.Fatalf("the conversation ended: %v\n%s", err, strings.Join(screen.Lines(), "\n"))
			case <-time.After(10 * time.Millisecond):
			}
		}
		t.Fatalf("%q does not appear:\n%s", text, strings.Join(screen.Lines(), "\n"))
	}
	await("Ask something.")
	if _, err := io.WriteString(control, "a question\r"); err != nil {
		t.Fatal(err)
	}
	await("The first half of the ans")
	_ = control.Close() // hangs up
	select {
	case err := <-over:
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.ExitStatus() != 128+int(syscall.SIGHUP) {
			t.Errorf("the process ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the process outlives its terminal")
	}
	<-read

	var report struct {
		State, Partial string
	}
	if err := json.Unmarshal([]byte(tenonSays(t, dir, "runs", "show", "-1", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Partial != "The first half of the ans" {
		t.Errorf("the run: %+v", report)
	}
	if err := os.WriteFile("steps.yaml", []byte("steps: [{text: The whole answer.}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tenonSays(t, dir, "runs", "resume", "-1"); !strings.Contains(got, "The whole answer.") {
		t.Errorf("the resumed run says %q", got)
	}
}

// tenonSays runs tenon in a project folder, with that folder as its home, and returns its output.
func tenonSays(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command("tenon", append(args, "-c", "tenon.yaml")...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "TENON_NO_PROBE=1")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("tenon %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}
