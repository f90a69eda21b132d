package host

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
)

// DemoModel is the name of the built-in scripted model.
const DemoModel = "demo"

// noKey stands for the keys of models in a replay.
const noKey = "there-is-no-key-in-a-replay"

// scriptPrefix begins the name of a model that plays a file of steps.
const scriptPrefix = "script:"

// models opens models by name and keeps them.
type models struct {
	h *Host

	// prices is the table of prices, read when a model is first opened.
	prices func() (*model.Prices, error)

	mu   sync.Mutex
	open map[string]opened
}

// opened is a model, and the check that it brings along for the end of a run.
type opened struct {
	tenon.Model
	check interface {
		// Unconsumed says what a conversation that has ended should have had
		// and did not.
		Unconsumed([]*tenon.Message) error
	}
}

func openModels(h *Host) *models {
	m := &models{h: h, open: map[string]opened{}}
	m.prices = sync.OnceValues(func() (*model.Prices, error) { return model.LoadPrices(h.config.Prices) })
	for name, own := range h.cfg.Models {
		m.open[name] = opened{Model: h.cassette.model(ownModel{own, h.log})}
	}
	return m
}

// choose says which model a run uses, as a name that any process with the same
// configuration can open: what the question names, what the host was opened
// with, what the agent names, the first entry of models, the only model of the program,
// what the environment has a key for.
func (m *models) choose(ctx context.Context, question, agent string) (string, error) {
	for _, name := range []string{question, m.h.cfg.Model, agent} {
		if name == "" {
			continue
		}
		if file, ok := strings.CutPrefix(name, scriptPrefix); ok {
			abs, err := filepath.Abs(file)
			if err != nil {
				return "", tenon.Errorf(tenon.CodeInvalid, "--model %s: %w", name, err)
			}
			name = scriptPrefix + abs
		}
		_, err := m.get(ctx, name)
		return name, err
	}
	if names := m.h.config.ModelNames(); len(names) > 0 {
		_, err := m.get(ctx, names[0])
		return names[0], err
	}
	if len(m.h.cfg.Models) == 1 {
		for name := range m.h.cfg.Models {
			return name, nil
		}
	}
	if name, ok := DetectModel(ctx, m.h.cfg.LookupEnv, false); ok {
		return name, nil
	}
	return "", tenon.Errorf(tenon.CodeConfig, "there is no model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, add an entry to models in tenon.yaml, or name one with --model provider/name, or --model demo, a built-in script that knows three questions")
}

// priced adds to the settings of a model its price, where one is known.
func (m *models) priced(c model.Config) (model.Config, error) {
	table, err := m.prices()
	if err != nil {
		return c, err
	}
	if p, ok := table.For(c); ok {
		c.Price = &p
	}
	return c, nil
}

// Price returns what the tokens of a model cost: the model as [Question.Model]
// names it. False: no price is known. Errors: config, not_found.
func (h *Host) Price(_ context.Context, name string) (model.Price, bool, error) {
	if name == DemoModel {
		return model.Price{}, false, nil
	}
	c, err := h.models.settings(name)
	if err == nil {
		c, err = h.models.priced(c)
	}
	if err != nil || c.Price == nil {
		return model.Price{}, false, err
	}
	return *c.Price, true, nil
}

// settings returns those of a model by name, without its key: an entry of models, or
// "provider/name" with that provider's defaults. No place of a secret is looked at.
func (m *models) settings(name string) (model.Config, error) {
	if _, ok := m.h.config.Models[name]; ok {
		return m.h.config.KeylessModel(name), nil
	}
	if file, ok := strings.CutPrefix(name, scriptPrefix); ok {
		return model.Config{Name: name, Provider: "script", Path: file}, nil
	}
	provider, id, ok := strings.Cut(name, "/")
	if _, known := model.Lookup(provider); !ok || !known || id == "" {
		entries := ""
		if names := m.h.config.ModelNames(); len(names) > 0 {
			entries = "an entry of models (" + strings.Join(names, ", ") + "), "
		}
		return model.Config{}, tenon.Errorf(tenon.CodeNotFound, "there is no model '%s': name %sprovider/name with a provider of %s, or script:FILE",
			name, entries, strings.Join(model.ProviderNames(), ", "))
	}
	return model.Config{Name: name, Provider: provider, Model: id}, nil
}

// config returns the settings of a model with its key.
func (m *models) config(ctx context.Context, name string) (model.Config, error) {
	c, err := m.settings(name)
	if err != nil || strings.HasPrefix(name, scriptPrefix) {
		return c, err
	}
	if m.h.cassette.player != nil { // it reaches nobody, so that no key is looked for
		c.APIKey = tenon.NewSecret(noKey)
		return c, nil
	}
	if _, ok := m.h.config.Models[name]; ok {
		return m.h.config.Model(ctx, name)
	}
	p, _ := model.Lookup(c.Provider)
	if key, ok := m.h.cfg.LookupEnv(p.KeyEnv); ok && p.KeyEnv != "" {
		c.APIKey = tenon.NewSecret(key)
	}
	return c, nil
}

// get opens a model, or returns the one that is open already.
func (m *models) get(ctx context.Context, name string) (opened, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.open[name]; ok {
		return o, nil
	}
	o, err := m.make(ctx, name)
	if err != nil {
		return opened{}, err
	}
	m.open[name] = o
	return o, nil
}

// mode says how the tools of a model are called where its agent does not say it.
func (m *models) mode(name string) string {
	if c, err := m.settings(name); err == nil && c.ToolMode == model.ToolsReact {
		return agent.ModeReact
	}
	return agent.ModeNative
}

// takesTools reports whether a model is to be offered tools.
func (m *models) takesTools(name string) bool {
	c, err := m.settings(name)
	return err != nil || c.ToolMode != model.ToolsNone
}
