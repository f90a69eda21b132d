package host

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// registerForExport registers the values of all configured secrets for redaction. A variable that is not set is only
// reported in the log: tenon cannot know its value. Errors: auth_required (any other secret that cannot be read).
func (h *Host) registerForExport(ctx context.Context) error {
	var unset []string // messages about variables that are not set
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
		c, err := h.models.settings(name)
		switch {
		case err != nil:
		case h.cfg.Untrusted:
			err = errUntrusted()
		default:
			c, err = h.models.withSecrets(ctx, name, c) // also in a replay, whose models get no keys
		}
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
	errs = slices.DeleteFunc(append(errs, err, oerr, terr), func(err error) bool {
		missing := errors.Is(err, config.ErrUnset)
		if missing && !slices.Contains(unset, err.Error()) {
			unset = append(unset, err.Error())
		}
		return missing
	})
	err = errors.Join(errs...)
	if err == nil && unset != nil { // the others of an entry were not read
		var values []tenon.Secret
		values, err = h.config.ReadSecrets(ctx)
		for _, v := range values {
			h.redactor.Add(v)
		}
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeAuth, "a secret cannot be read, so it would not be masked: %w; provide it, "+
			"or take it out of the configuration", err)
	}
	if len(unset) > 0 {
		h.log.Warn("a secret is not known, so its value is masked only where it was masked when it was stored: " +
			strings.Join(unset, "; "))
	}
	return nil
}
