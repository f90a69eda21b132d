package host

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/script"
)

// DemoModel is the name of the built-in scripted model.
const DemoModel = "demo"

// NoModel begins the error about a question for which no model is configured or found.
const NoModel = "there is no model"

// noKey replaces the keys of models in a replay.
const noKey = "there-is-no-key-in-a-replay"

// scriptPrefix is the prefix of the names of models that play a file of steps.
const scriptPrefix = "script:"

// models opens models by name and keeps them.
type models struct {
	h *Host

	// prices returns the table of prices, read when a model is first opened.
	prices func() (*model.Prices, error)

	uploads uploads

	mu     sync.Mutex
	open   map[openKey]executor.Model
	making map[openKey]chan struct{} // closed when the model is open, or cannot be opened
}

// openKey identifies an open model. Each agent with tools of the provider has a separate one, because the requests
// differ.
type openKey struct {
	model string
	agent string // empty unless the agent has tools of the provider
}

func openModels(h *Host) *models {
	m := &models{h: h, open: map[openKey]executor.Model{}, making: map[openKey]chan struct{}{}}
	m.uploads.h = h
	m.prices = sync.OnceValues(h.loadPrices)
	for name, own := range h.cfg.Models {
		m.open[openKey{model: name}] = executor.Model{Model: h.cassette.model(ownModel{own, name, h.log})}
	}
	return m
}

// closing bounds the time for deleting at providers what this process stored there.
const closing = 10 * time.Second

// close deletes the files and caches at providers.
func (m *models) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	m.uploads.close(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, o := range m.open {
		c, ok := o.Model.(interface{ Close(context.Context) error })
		if !ok {
			continue
		}
		err := c.Close(ctx)
		if err != nil {
			m.h.log.Warn("a cache at the provider is not deleted; it expires", "model", key.model, "error", err.Error())
		}
	}
}

// loadPrices reads the configured file of prices.
func (h *Host) loadPrices() (*model.Prices, error) {
	path := h.config.Prices
	if !h.config.Knows(path) {
		return model.LoadPrices(path)
	}
	data, err := h.config.ReadFile(path, model.MaxPriceFile)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %w", err)
	}
	return model.PricesFrom(path, data)
}

// loadScript reads the steps of a scripted model.
func (h *Host) loadScript(c model.Config) (*script.Model, error) {
	if !h.config.Knows(c.Path) {
		return script.New(c)
	}
	data, err := h.config.ReadFile(c.Path, script.MaxFile)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, tenon.Errorf(tenon.CodeNotFound, "script %s: %w; name a file of steps", c.Path, path.Err)
	case err != nil:
		return nil, tenon.Errorf(tenon.ErrorCode(err), "script %s: %w", c.Path, err)
	}
	return script.NewFrom(c, data)
}

// choose returns the name of a run's model, which any process with the same configuration can open. The first of these
// decides: the question, the host's Config, the agent, the first entry of models, the only model of the program, a key
// in the environment.
func (m *models) choose(ctx context.Context, question, agent string) (string, error) {
	for i, name := range []string{m.entryOf(question), m.entryOf(m.h.cfg.Model), agent} {
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
		if _, entry := m.h.config.Models[name]; i == 0 && !entry && tenon.ErrorCode(err) == tenon.CodeConfig {
			err = tenon.Errorf(tenon.CodeInvalid, "%w", err) // a mistake of the question, not of tenon.yaml
		}
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
	return "", tenon.Errorf(tenon.CodeInvalid, NoModel+": save a key with tenon models login "+
		"openai (or anthropic, gemini, openrouter), set a variable such as OPENAI_API_KEY, start Ollama, add an entry "+
		"to models in tenon.yaml, or name one with --model provider/name, or --model demo, a built-in script that "+
		"knows three questions")
}

// entryOf returns the entry of models that name means: the entry with this name, or else the first one, in the order of
// the file, whose model has this name at its provider. It returns name itself if no entry fits.
func (m *models) entryOf(name string) string {
	entries := m.h.config.Models
	if _, ok := entries[name]; ok || name == "" {
		return name
	}
	for _, entry := range m.h.config.ModelNames() {
		if entries[entry].Model == name {
			return entry
		}
	}
	return name
}

// isDemo reports whether name means the built-in model. An entry of models with this name comes first.
func (m *models) isDemo(name string) bool {
	_, configured := m.h.config.Models[name]
	return name == DemoModel && !configured
}

// priced adds the price of a model to its settings, if the price is known.
func (m *models) priced(c model.Config) (model.Config, error) {
	table, err := m.prices()
	if err != nil {
		return c, err
	}
	p, ok := table.For(c)
	if !ok {
		return c, nil
	}
	if m.h.config.HoldsPrice(c.Name) {
		if p, err = m.heldPrice(c, p); err != nil {
			return c, err
		}
	}
	c.Price = &p
	return c, nil
}

// heldPrice returns a price that a project sets, but at least the price without the project. With a lower price, the
// project would lift cost limits of more trusted layers.
func (m *models) heldPrice(c model.Config, said model.Price) (model.Price, error) {
	table, err := m.prices()
	if m.h.config.Layer("prices") == config.LayerProject {
		table, err = model.LoadPrices("")
	}
	if err != nil {
		return said, err
	}
	c.Price = nil
	if known, ok := table.For(c); ok {
		said = said.AtLeast(known)
	}
	return said, nil
}

func (h modelsHandle) Price(_ context.Context, name string) (model.Price, bool, error) {
	if h.host.models.isDemo(name) {
		return model.Price{}, false, nil
	}
	c, err := h.host.models.settings(name)
	if err == nil {
		c, err = h.host.models.priced(c)
	}
	if err != nil || c.Price == nil {
		return model.Price{}, false, err
	}
	return *c.Price, true, nil
}

// settings returns the settings of a model by name, without its key: an entry of models, or "provider/name" with the
// provider's defaults. It reads no secret.
func (m *models) settings(name string) (model.Config, error) {
	if _, ok := m.h.config.Models[name]; ok {
		return m.h.config.KeylessModel(name), nil
	}
	if file, ok := strings.CutPrefix(name, scriptPrefix); ok {
		return model.Config{Name: name, Provider: "script", Path: file}, nil
	}
	if layer, ok := strings.CutSuffix(name, ":"); ok && (layer == string(config.LayerUser) ||
		layer == string(config.LayerAdmin)) {
		return model.Config{}, tenon.Errorf(tenon.CodeConfig, "the %s's file has an agent without a model, and no "+
			"models: the models of a project are not used for it; write agents.NAME.model there, or name one "+
			"with --model", layer)
	}
	provider, id, ok := strings.Cut(name, "/")
	if _, known := model.Lookup(provider); !ok || !known || id == "" {
		return model.Config{}, m.unknown(name)
	}
	return model.Config{Name: name, Provider: provider, Model: id}, nil
}

// config returns the settings of a model with its key.
func (m *models) config(ctx context.Context, name string) (c model.Config, err error) {
	c, err = m.settings(name)
	if err != nil || strings.HasPrefix(name, scriptPrefix) {
		return c, err
	}
	if m.h.cfg.Untrusted {
		return c, errUntrusted()
	}
	if m.h.cassette.player != nil { // a replay sends nothing and needs no key
		c.APIKey = tenon.NewSecret(noKey)
		return c, nil
	}
	return m.withSecrets(ctx, name, c)
}

// withSecrets returns the settings of a model with its key and its other secrets.
func (m *models) withSecrets(ctx context.Context, name string, c model.Config) (_ model.Config, err error) {
	if _, ok := m.h.config.Models[name]; ok {
		defer guard(m.h.log, loadedEnv, &err)
		return m.h.config.Model(ctx, name)
	}
	p, _ := model.Lookup(c.Provider)
	if key, ok := m.h.cfg.LookupEnv(p.KeyEnv); ok && p.KeyEnv != "" {
		c.APIKey = tenon.NewSecret(key)
	}
	return c, nil
}

// checkSampling refuses settings of a question that its model, or a fallback of it, cannot be sent. Errors: invalid.
func (m *models) checkSampling(spec *agent.Spec) error {
	s := spec.Sampling.Over(spec.Settings)
	if s.IsZero() {
		return nil
	}
	if spec.React != nil && len(s.Stop) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "stop cannot be used with agent '%s': its mode is react, where it "+
			"would cut off steps", spec.Agent)
	}
	for _, name := range (execution{m.h}).Candidates(spec.Agent, spec.Model) {
		c, err := m.settings(name)
		if err != nil {
			c = model.Config{} // a model of the program, or one that cannot be opened, which the run reports
		}
		if err := c.CheckSampling(s); err != nil {
			return err
		}
	}
	return nil
}

// dropped returns a warning for each model that cannot be sent all settings of a question, after a handoff to an agent.
func (m *models) dropped(s *agent.Sampling, spec *agent.Spec) []string {
	if s.IsZero() {
		return nil
	}
	var out []string
	if spec.React != nil && len(s.Stop) > 0 {
		out = append(out, "stop is dropped after the handoff to agent '"+spec.Agent+"': its mode is react, where stop "+
			"would cut off steps")
	}
	for _, name := range (execution{m.h}).Candidates(spec.Agent, spec.Model) {
		c, err := m.settings(name)
		if err != nil {
			continue // a model of the program, or one that cannot be opened, which the run reports
		}
		if names := c.Unsent(s); len(names) > 0 {
			out = append(out, strings.Join(names, ", ")+" of the question cannot be sent to model '"+name+
				"', which answers after the handoff to agent '"+spec.Agent+"'; leave it out, or give the agent "+
				"another model")
		}
	}
	return out
}

// isOwn reports whether the program provides a model.
func (m *models) isOwn(name string) bool {
	_, own := m.h.cfg.Models[name]
	return own
}

// mode returns how a model calls tools if its agent does not say it.
func (m *models) mode(name string) string {
	if c, err := m.settings(name); err == nil && c.ToolMode == model.ToolsReact {
		return agent.ModeReact
	}
	return agent.ModeNative
}

// takesTools reports whether requests to a model may contain tools.
func (m *models) takesTools(name string) bool {
	c, err := m.settings(name)
	return err != nil || c.ToolMode != model.ToolsNone
}
