package main

import (
	"context"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// askSecrets asks for the secrets that are to be asked for and have no value yet,
// before anything is started. Where nobody can be asked, what needs one says so.
func (a *app) askSecrets(ctx context.Context, cfg *config.Config) error {
	if !a.canAsk() {
		return nil
	}
	list, err := cfg.Questions()
	if err != nil {
		return err
	}
	for _, q := range list {
		value, err := a.askHidden(ctx, safeLine(q.Text)+": ", q.Hidden)
		if err != nil {
			return tenon.Errorf(tenon.CodeCancelled, "interrupted")
		}
		if value == "" {
			continue // what needs it says so
		}
		kept, err := cfg.Answer(q, value)
		if err != nil {
			return err
		}
		if !kept {
			a.hint("there is no keyring: the answer holds until this command ends")
		}
	}
	return nil
}

// askHidden asks for a line, without showing what is typed where that is wished.
func (a *app) askHidden(ctx context.Context, question string, hidden bool) (string, error) {
	f, ok := a.in.(*os.File)
	if !hidden || !ok || !term.IsTerminal(int(f.Fd())) {
		return a.ask(ctx, question)
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return a.ask(ctx, question)
	}
	a.note("%s", strings.TrimSpace(question))
	type typed struct {
		text []byte
		err  error
	}
	got := make(chan typed, 1)
	go func() { // it ends with the line, or with the process
		text, err := term.ReadPassword(int(f.Fd()))
		got <- typed{text, err}
	}()
	select {
	case <-ctx.Done():
		_ = term.Restore(int(f.Fd()), before) // the reading goes on with the terminal as it is
		return "", ctx.Err()
	case t := <-got:
		return strings.TrimSpace(string(t.text)), t.err
	}
}
