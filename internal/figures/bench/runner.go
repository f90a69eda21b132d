package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Runner is a process that runs [Serve].
type Runner struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	enc    *json.Encoder
	dec    *json.Decoder
	stderr *tail
}

// Start starts a runner and waits until it is ready. If it ends early, the error contains its stderr.
func Start(ctx context.Context, name string, command ...string) (*Runner, error) {
	r := &Runner{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...), stderr: &tail{}}
	r.cmd.Stderr = r.stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.cmd.WaitDelay = 2 * time.Second
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: starting %s: %w", name, err)
	}
	r.in, r.enc, r.dec = in, json.NewEncoder(in), json.NewDecoder(out)
	if _, err := r.report(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Do sends an order and waits for the report.
func (r *Runner) Do(o Order) (Report, error) {
	if err := r.enc.Encode(o); err != nil {
		return Report{}, r.explain(err)
	}
	return r.report()
}

func (r *Runner) report() (Report, error) {
	var rep Report
	if err := r.dec.Decode(&rep); err != nil {
		r.Close() // waits for the rest of stderr
		return Report{}, r.explain(err)
	}
	if rep.Error != "" {
		return Report{}, r.explain(errors.New(rep.Error))
	}
	return rep, nil
}

func (r *Runner) explain(err error) error {
	if said := r.stderr.String(); said != "" {
		return fmt.Errorf("bench: runner %s: %w; stderr: %s", r.name, err, said)
	}
	return fmt.Errorf("bench: runner %s: %w", r.name, err)
}

// Close lets the runner end, and kills it after two seconds.
func (r *Runner) Close() {
	_ = r.in.Close()
	timer := time.AfterFunc(2*time.Second, func() { _ = r.cmd.Process.Signal(os.Kill) })
	defer timer.Stop()
	_ = r.cmd.Wait() // the status is not needed
}

// tail keeps the last 2 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer]. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - 2048; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

// String returns the kept bytes as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(t.buf.String()), " ")
}
