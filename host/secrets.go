package host

import (
	"context"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
)

// registerSecrets reads the values of all configured secrets and registers them for redaction. Errors: auth_required
// (a secret that cannot be read).
func (h *Host) registerSecrets(ctx context.Context) error {
	var errs []error
	for name := range h.config.Secrets {
		v, err := h.config.Resolve(ctx, name)
		h.redactor.Add(v)
		errs = append(errs, err)
	}
	for name, s := range h.config.Servers {
		if !s.IsEnabled() {
			continue
		}
		c, err := h.config.Server(ctx, name)
		for _, v := range c.SecretValues() {
			h.redactor.Add(v)
		}
		errs = append(errs, err)
		for who := range s.Principals {
			_, used, err := h.config.Own(ctx, name, tenon.Principal(who))
			for _, v := range used {
				h.redactor.Add(v)
			}
			errs = append(errs, err)
		}
	}
	for _, name := range h.config.ModelNames() {
		c, err := h.models.config(ctx, name)
		h.redactor.Add(c.APIKey)
		for _, v := range c.ToolSecrets {
			h.redactor.Add(v)
		}
		errs = append(errs, err)
	}
	for name := range h.config.Agents {
		_, used, err := h.config.ProviderTools(ctx, name)
		for _, v := range used {
			h.redactor.Add(v)
		}
		errs = append(errs, err)
	}
	registry, err := h.config.RegistryToken(ctx)
	own, oerr := h.config.ServeSecret(ctx)
	tokens, terr := h.config.ServeTokens(ctx)
	h.redactor.Add(registry)
	h.redactor.Add(own)
	for _, v := range tokens {
		h.redactor.Add(v)
	}
	if err := errors.Join(append(errs, err, oerr, terr)...); err != nil {
		remedy := "; set it, or take it out of the configuration"
		if strings.HasSuffix(err.Error(), "; set it") {
			remedy = ", or take it out of the configuration"
		}
		return tenon.Errorf(tenon.CodeAuth, "a secret cannot be read, so it would not be masked: %w%s", err,
			remedy)
	}
	return nil
}
