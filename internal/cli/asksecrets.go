package cli

import (
	"context"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// askSecrets asks for the secrets that have prompt as their source and have no value yet, before anything is started.
// If nobody can be asked, the server or model that needs the secret reports the error.
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
			continue // the server or model that needs it reports the error
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

// askHidden asks for a line. If hidden is set and the input is a terminal, the typed text is not shown.
func (a *app) askHidden(ctx context.Context, question string, hidden bool) (string, error) {
	f, ok := a.in.(*os.File)
	if !hidden || !ok || !term.IsTerminal(int(f.Fd())) {
		return a.ask(ctx, question)
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return a.ask(ctx, question)
	}
	defer a.fresh()()
	a.note("%s", strings.TrimSpace(question))
	type typed struct {
		text []byte
		err  error
	}
	got := make(chan typed, 1)
	go func() { // ends when a line was read, or with the process
		text, err := term.ReadPassword(int(f.Fd()))
		got <- typed{text, err}
	}()
	select {
	case <-ctx.Done():
		_ = term.Restore(int(f.Fd()), before) // ReadPassword is still reading and would restore it too late
		return "", ctx.Err()
	case t := <-got:
		return strings.TrimSpace(string(t.text)), t.err
	}
}
