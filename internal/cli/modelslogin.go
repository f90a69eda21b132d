package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/model"
)

func newModelsLogin(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "login PROVIDER",
		Short: "Keep the API key of a provider",
		Long: "Asks for the API key of a provider, or reads it from a pipe, and keeps it encrypted in your state\n" +
			"folder. The key of the encryption is in the system's keyring, if there is one. A kept key\n" +
			"is used in all projects where the environment does not set the provider's variable, such as\n" +
			"OPENAI_API_KEY. It is never written to a project.",
		Example:   "  tenon models login openai\n  tenon models login openrouter < key.txt",
		Args:      args(1, 1, "the name of a provider"),
		ValidArgs: host.KeyedProviders(),
		RunE: func(cmd *cobra.Command, names []string) error {
			err := a.keepKey(cmd.Context(), names[0], nil)
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"provider": names[0], "kept": true})
			}
			fmt.Fprintf(a.err, "%s the key of %s is kept; tenon models test tries it\n", a.errStyle(green, "✓"),
				safeLine(names[0]))
			return nil
		},
	}
}

func newModelsLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "logout PROVIDER",
		Short:     "Remove the kept API key of a provider",
		Long:      "Removes the key that tenon models login has kept. The key remains valid at the provider.",
		Example:   "  tenon models logout openai",
		Args:      args(1, 1, "the name of a provider"),
		ValidArgs: host.KeyedProviders(),
		RunE: func(_ *cobra.Command, names []string) error {
			had := a.modelKeys().Has(names[0])
			if err := a.modelKeys().Set(names[0], tenon.Secret{}); err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"provider": names[0], "removed": had})
			}
			if !had {
				a.note("no key of %s was kept", names[0])
				return nil
			}
			fmt.Fprintf(a.err, "%s the kept key of %s is removed\n", a.errStyle(green, "✓"), safeLine(names[0]))
			return nil
		},
	}
}

// keepKey asks for a key and keeps it. hidden asks the person, who may cancel with [tui.ErrNoSecret]; if it is nil, the
// question is a plain line.
func (a *app) keepKey(ctx context.Context, provider string,
	hidden func(ctx context.Context, question string) (string, error)) error {
	keys := a.modelKeys()
	if err := keys.Check(provider); err != nil {
		return err
	}
	p, _ := model.Lookup(provider)
	if a.inTTY && a.noInput {
		return tenon.Errorf(tenon.CodeInvalid, "--no-input: the key of %s cannot be asked for; write it to stdin, "+
			"such as tenon models login %s < key.txt, or set %s", provider, provider, p.KeyEnv)
	}
	read := a.lines.next
	if a.inTTY {
		read = func(ctx context.Context) (string, error) { return a.askHidden(ctx, "API key of "+provider+": ", true) }
	}
	if hidden != nil {
		read = func(ctx context.Context) (string, error) { return hidden(ctx, "API key of "+provider) }
	}
	key, err := read(ctx)
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "interrupted")
	}
	if errors.Is(err, tui.ErrNoSecret) {
		return tenon.Errorf(tenon.CodeCancelled, "no key was kept")
	}
	if key = strings.TrimSpace(key); key == "" {
		return tenon.Errorf(tenon.CodeInvalid, "there is no key: type it, or write it to stdin; tenon models logout "+
			"%s removes a kept one", provider)
	}
	if err != nil {
		return err
	}
	if err := keys.Set(provider, tenon.NewSecret(key)); err != nil {
		return err
	}
	if v, ok := os.LookupEnv(p.KeyEnv); ok && v != key {
		a.note("warning: %s is set to another value, which is used in place of the kept key", p.KeyEnv)
	}
	return nil
}

// modelKeys returns the keys that the person gave tenon to keep.
func (a *app) modelKeys() *host.ModelKeys {
	return host.KeysOf(host.Config{Home: a.home, LookupEnv: os.LookupEnv})
}

// keepsKey reports whether a kept key is used for a provider. The provider's environment variable has precedence over
// the kept key.
func (a *app) keepsKey(provider string) bool {
	p, _ := model.Lookup(provider)
	_, set := os.LookupEnv(p.KeyEnv)
	return !set && a.modelKeys().Has(provider)
}

// variable looks up an environment variable. If the variable of a provider's key is not set, it returns the kept key.
func (a *app) variable(name string) (string, bool) {
	v, ok := os.LookupEnv(name)
	if ok {
		return v, ok
	}
	v, ok, err := a.modelKeys().Variable(name)
	if err != nil {
		a.badKey.Do(func() { a.note("warning: %v", err) })
	}
	return v, ok
}
