package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
)

// The commands of chat --plain that change the conversation. They are only for a person at a terminal: the lines of a
// pipe may be written by others, who must not change models or keys.

// plainHelp lists these commands.
const plainHelp = "/model NAME     answer with another model; without a name, list the models\n" +
	"/agent NAME     answer as another agent; without a name, list the agents\n" +
	"/login PROVIDER save the API key of a provider, and use its model\n" +
	"/new            begin a new conversation\n" +
	"/resume ID      continue another conversation; without an id, list the last ones\n" +
	"/undo           continue in a copy that ends before the last question"

func plainWords() []string { return []string{"/agent", "/login", "/model", "/new", "/resume", "/undo"} }

// plainWord carries out one of these commands.
func (a *app) plainWord(ctx context.Context, h desk, q *asking, name, rest string) error {
	switch name {
	case "/model":
		return a.plainModel(ctx, h, q, rest)
	case "/agent":
		return a.plainAgent(h, q, rest)
	case "/login":
		return a.plainLogin(ctx, h, q, rest)
	case "/resume":
		return a.plainResume(ctx, h, q, rest)
	case "/undo":
		return a.plainUndo(ctx, h, q)
	}
	q.session, q.fork = "", false
	a.note("a new conversation begins with the next question")
	return nil
}

func (a *app) plainModel(ctx context.Context, h desk, q *asking, name string) error {
	if name == "" {
		list, err := h.Models().List(ctx, false)
		for _, m := range list {
			a.note("%s", strings.TrimRight(safeLine(m.Name)+"  "+safeLine(m.Model), " "))
		}
		return err
	}
	if here, ok := h.(*host.Host); ok {
		if err := checkModel(ctx, here, name); err != nil {
			return err
		}
	}
	q.model, q.switched = name, true
	a.note("the next question goes to %s", safeLine(name))
	return nil
}

func (a *app) plainAgent(h desk, q *asking, name string) error {
	here, ok := h.(*host.Host)
	switch {
	case !ok && name == "":
		return tenon.Errorf(tenon.CodeInvalid, "/agent NAME needs a name with --remote")
	case ok && name == "":
		cfg := here.Service().Info().Config
		for _, n := range cfg.AgentNames() {
			a.note("%s", strings.TrimRight(safeLine(n)+"  "+safeLine(about(cfg.Agents[n].Description)), " "))
		}
		if len(cfg.AgentNames()) == 0 {
			a.note("there is only the default agent")
		}
		return nil
	case ok:
		if _, err := here.Service().Info().Config.Agent(name); err != nil {
			return err
		}
	}
	q.agent = name
	a.note("the next question goes to agent %s", safeLine(name))
	return nil
}

// plainLogin keeps a key. Esc and Ctrl-C end only the question for the key.
func (a *app) plainLogin(ctx context.Context, h desk, q *asking, provider string) error {
	if _, ok := h.(*host.Host); !ok {
		return tenon.Errorf(tenon.CodeInvalid, "/login does not go with --remote: keys are kept on the machine of "+
			"tenon serve")
	}
	if len(strings.Fields(provider)) != 1 {
		return tenon.Errorf(tenon.CodeInvalid, "/login takes the name of a provider (%s) only; the key is asked for, "+
			"hidden", strings.Join(host.KeyedProviders(), ", "))
	}
	err := interruptible(ctx, func(ctx context.Context) error { return a.keepKey(ctx, provider, nil) })
	if errors.Is(err, tui.ErrNoSecret) || tenon.ErrorCode(err) == tenon.CodeCancelled {
		a.note("no key was kept")
		return nil
	}
	if err != nil {
		return err
	}
	name, found := host.DetectModel(ctx, a.only(provider), false)
	if !found {
		a.note("the key of %s is kept; name a model of it with /model %s/NAME", safeLine(provider), safeLine(provider))
		return nil
	}
	q.model, q.switched = name, true
	a.note("the key of %s is kept for all projects; the next question goes to %s", safeLine(provider), safeLine(name))
	return nil
}

func (a *app) plainResume(ctx context.Context, h desk, q *asking, ref string) error {
	if ref == "" {
		list, err := h.Sessions().List(ctx, host.SessionFilter{Limit: 20})
		for _, s := range list {
			a.note("%s", shorten(s.ID+"  "+a.when(s.Updated)+"  "+safeLine(s.Title), a.width()))
		}
		if err == nil && len(list) == 0 {
			a.note("no conversations yet")
		}
		return err
	}
	s, err := h.Sessions().Get(ctx, ref)
	if err != nil {
		return err
	}
	q.session, q.fork = s.ID, false
	a.note("%s continues: %s", s.ID, shorten(safeLine(s.Title), a.width()))
	return nil
}

func (a *app) plainUndo(ctx context.Context, h desk, q *asking) error {
	if q.session == "" {
		return tenon.Errorf(tenon.CodeInvalid, "nothing was said yet")
	}
	before, err := beforeQuestion(ctx, h, q.session)
	if err != nil {
		return err
	}
	if before < 1 {
		a.note("the conversation was undone; the next question begins a new one, and %s stays as it was", q.session)
		q.session, q.fork = "", false
		return nil
	}
	s, _, err := h.Sessions().Fork(ctx, host.Fork{Session: q.session, At: strconv.Itoa(before)})
	if err != nil {
		return err
	}
	a.note("this is the copy %s; %s stays as it was", s.ID, q.session)
	q.session, q.fork = s.ID, false
	return nil
}
