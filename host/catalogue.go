package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

func (h modelsHandle) Offered(ctx context.Context, name string) ([]model.Listed, error) {
	c, err := h.host.models.ofProvider(ctx, name)
	if err != nil {
		return nil, err
	}
	env := model.Env{LookupEnv: h.host.cfg.LookupEnv, Key: h.host.models.keyAgain(c.Name)}
	if c.Provider == "bedrock" {
		return bedrock.List(ctx, c, env)
	}
	return model.List(ctx, c, env)
}

func (h modelsHandle) Pull(ctx context.Context, name string, progress func(model.Pulled)) error {
	c, err := h.host.models.config(ctx, name)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		if c, err = h.host.models.ofProvider(ctx, "ollama"); err == nil {
			c.Model = name
		}
	}
	if err != nil {
		return err
	}
	return model.Pull(ctx, c, model.Env{LookupEnv: h.host.cfg.LookupEnv}, progress)
}

// ofProvider returns the settings of an entry, or of the first entry of a provider, or of the provider itself.
func (m *models) ofProvider(ctx context.Context, name string) (model.Config, error) {
	if _, ok := m.h.config.Models[name]; ok {
		return m.config(ctx, name)
	}
	if _, ok := model.Lookup(name); !ok {
		return model.Config{}, m.unknown(name)
	}
	for _, entry := range m.h.config.ModelNames() {
		if m.h.config.Models[entry].Provider == name {
			return m.config(ctx, entry)
		}
	}
	c, err := m.config(ctx, name+"/none")
	c.Model = ""
	return c, err
}
