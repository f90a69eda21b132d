package cli

import (
	"context"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/model"
)

// The command /login asks for a key, keeps it as tenon models login does, and sends the next question to the provider's
// model. The key is typed hidden, so neither the input's history nor the conversation has it.

// login keeps the key of a provider and uses its model from the next question on. Without a name the person chooses a
// provider.
func (t *talk) login(ctx context.Context, provider string) error {
	switch {
	case provider == "":
		c := tui.Choices{Title: "a provider whose API key you have", Command: "/login"}
		for _, name := range host.KeyedProviders() {
			p, _ := model.Lookup(name)
			c.Items = append(c.Items, tui.Choice{Value: name, About: p.KeyEnv, Now: t.a.keepsKey(name)})
		}
		t.p.Send(c)
		return nil
	case strings.ContainsAny(provider, " \t\n"):
		return tenon.Errorf(tenon.CodeInvalid, "/login takes the name of a provider only; the key is asked for, hidden")
	}
	here, ok := t.h.(*host.Host)
	if !ok {
		return tenon.Errorf(tenon.CodeInvalid, "/login does not go with --remote: keys are kept on the "+
			"machine of tenon serve")
	}
	if err := t.a.keepKey(ctx, provider, t.p.Secret); err != nil {
		return err
	}
	name, found := host.DetectModel(ctx, t.a.only(provider), false)
	if !found {
		t.note("the key of %s is kept; name a model of it with /model %s/NAME", safeLine(provider), safeLine(provider))
		return nil
	}
	if err := checkModel(ctx, here, name); err != nil {
		return err
	}
	t.mu.Lock()
	t.q.model, t.q.switched, t.totals.model = name, true, ""
	t.mu.Unlock()
	t.note("the key of %s is kept for all projects; the next question goes to %s", safeLine(provider), safeLine(name))
	return nil
}

// only looks up the key variable of one provider, so that a model of this provider is detected.
func (a *app) only(provider string) func(string) (string, bool) {
	p, _ := model.Lookup(provider)
	return func(name string) (string, bool) {
		if name != p.KeyEnv {
			return "", false
		}
		return a.lookupEnv(name)
	}
}
