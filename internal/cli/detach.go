package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// detachFlags are the flags of tenon run that hand the question to another process.
type detachFlags struct {
	detach bool
	key    string
}

func (d *detachFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&d.detach, "detach", false, "hand the question to the running tenon serve, print the run's "+
		"id, and return")
	cmd.Flags().StringVar(&d.key, "idempotency-key", "", "with --detach: the same `KEY` never begins a second run")
}

func (d *detachFlags) check(cmd *cobra.Command, q *asking) error {
	switch {
	case d.detach && (q.record != "" || q.replay != ""):
		return usage(cmd, "--detach does not go with --record and --replay: another process asks the model")
	case !d.detach && d.key != "":
		return usage(cmd, "--idempotency-key needs --detach")
	}
	return nil
}

// started is the JSON that run --detach -o json prints.
type started struct {
	Run     string         `json:"run"`
	Session string         `json:"session"`
	State   tenon.RunState `json:"state"`
}

// detach hands a question to the process that serves the store.
func (a *app) detach(ctx context.Context, q *asking, data *dataFiles, key, text string) (err error) {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closing(client, &err)
	e, err := a.extras(ctx, client, q, data, text)
	if err != nil {
		return err
	}
	r := startRequest(q.question(text), e)
	r.Model = q.model
	if a.remote == "" {
		if r.Model, err = absoluteScript(q.model); err != nil {
			return err
		}
	}
	got, err := client.Start(ctx, r, key)
	if r.Model == "" && a.remote == "" && noModel(err) && knownToDemo(text) {
		a.note("%s", scriptAnswers) // as without --detach; the process that serves knows whether it has a model
		r.Model = host.DemoModel
		got, err = client.Start(ctx, r, key)
	}
	if err != nil {
		return err
	}
	a.problems(httpapi.Problems(got.Problems))
	a.hint("see it with: %s", a.again("runs follow", got.Run.ID))
	if a.isJSON() {
		return a.printJSON(started{got.Run.ID, got.Run.Session, got.Run.State})
	}
	return a.printText(got.Run.ID)
}

// noModel reports whether a question was refused because its process has no model.
func noModel(err error) bool {
	return tenon.ErrorCode(err) == tenon.CodeInvalid && strings.Contains(err.Error(), host.NoModel+":")
}

// client returns a client of the server that --remote names. Without --remote, it is the process that serves the
// project's store.
func (a *app) client(ctx context.Context) (*httpapi.Client, error) {
	if a.remote != "" {
		f, err := a.far(ctx)
		if err != nil {
			return nil, err
		}
		return f.Client, nil
	}
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return nil, err
	}
	socket := host.Socket(host.Config{Config: cfg, Home: a.home, LookupEnv: a.lookupEnv})
	if socket == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "there is no store that a tenon serve could work on; name one "+
			"with --home")
	}
	return httpapi.NewClient(socket), nil
}

// absoluteScript makes the path of a script model absolute, for a process with another working folder.
func absoluteScript(model string) (string, error) {
	file, ok := strings.CutPrefix(model, "script:")
	if !ok {
		return model, nil
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "--model %s: %w", model, err)
	}
	return "script:" + abs, nil
}
