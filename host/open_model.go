package host

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/bedrock"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/ollama"
	"github.com/tenonhq/tenon/model/openai"
	"github.com/tenonhq/tenon/model/script"
	"github.com/tenonhq/tenon/model/textcall"
)

// make opens a model by name, with the cassette around it. own are an agent's tools of the provider.
func (m *models) make(ctx context.Context, name string, own json.RawMessage) (executor.Model, error) {
	if m.isDemo(name) {
		return executor.Model{Model: m.h.cassette.model(script.Demo())}, nil
	}
	c, err := m.config(ctx, name)
	if err == nil {
		c, err = m.priced(c)
	}
	if err != nil {
		return executor.Model{}, err
	}
	c, missing := c.WithTools(own)
	opened, err := m.adapter(c)
	for _, tool := range missing {
		opened.Notes = append(opened.Notes, "the provider's tool "+tool+" was not offered: the API of model '"+name+
			"' does not have it")
	}
	if err == nil && c.UploadMin() > 0 && m.h.cassette.transport() == nil {
		files := sync.OnceValues(func() (*model.Files, error) { return m.files(context.Background(), name) })
		opened.Upload = func(ctx context.Context, req *tenon.Request) (*tenon.Request, []string) {
			return m.uploads.upload(ctx, c, files, req)
		}
	}
	return opened, err
}

// adapter opens the model of a config, with the cassette around it.
func (m *models) adapter(c model.Config) (executor.Model, error) {
	if err := c.Check(); err != nil {
		return executor.Model{}, err
	}
	m.h.redactor.Add(c.APIKey)
	for _, secret := range c.ToolSecrets {
		m.h.redactor.Add(secret)
	}
	env := model.Env{Transport: m.h.cassette.transport(), LookupEnv: m.h.cfg.LookupEnv, Key: m.keyAgain(c.Name)}
	hosted := c.Hosted()
	switch c.Wire() {
	case model.WireAnthropic:
		o, err := anthropic.New(c, env)
		return executor.Model{Model: o, Hosted: hosted}, err
	case model.WireChat:
		o, err := openai.New(c, env)
		return executor.Model{Model: withTextCalls(c, o, err), Hosted: hosted}, err
	case model.WireOllama:
		o, err := ollama.New(c, env)
		return executor.Model{Model: withTextCalls(c, o, err)}, err
	case model.WireResponses:
		o, err := openai.NewResponses(c, env)
		return executor.Model{Model: o, Hosted: hosted, AsksFirst: c.AsksFirst()}, err
	case model.WireGemini:
		o, err := gemini.New(c, env)
		return executor.Model{Model: o, Hosted: hosted}, err
	case model.WireBedrock:
		o, err := bedrock.New(c, env)
		return executor.Model{Model: o, Hosted: hosted}, err
	case model.WireScript:
		o, err := m.h.loadScript(c)
		if err != nil {
			return executor.Model{}, err
		}
		return executor.Model{Model: m.h.cassette.model(o), Check: o, Hosted: hosted, AsksFirst: c.AsksFirst()}, nil
	}
	return executor.Model{}, tenon.Errorf(tenon.CodeConfig, "model '%s': provider %s cannot be used by this version "+
		"of tenon", c.Name, c.Provider)
}

// withTextCalls wraps the model of a config if calls in its text are executed. err is the error of opening it.
func withTextCalls(c model.Config, m tenon.Model, err error) tenon.Model {
	if err == nil && c.WithDefaults().ToolMode == model.ToolsAuto && c.ResolvedQuirks().TextCalls {
		return textcall.Wrap(m)
	}
	return m
}

// keyAgain returns a function that reads the key of an entry again, or nil if its place does not change.
func (m *models) keyAgain(name string) func(context.Context) (tenon.Secret, error) {
	source, ok := m.h.config.SecretAt("models." + name + ".api_key")
	if _, entry := m.h.config.Models[name]; !entry || !ok || source.File == "" && len(source.Command) == 0 {
		return nil
	}
	return func(ctx context.Context) (key tenon.Secret, err error) {
		defer guard(m.h.log, loadedEnv, &err)
		c, err := m.h.config.Model(ctx, name)
		if err != nil {
			return tenon.Secret{}, err
		}
		m.h.redactor.Add(c.APIKey)
		return c.APIKey, nil
	}
}
