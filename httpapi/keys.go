package httpapi

import (
	"context"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// Keys stores the API keys of model providers for the owner, outside of projects; see [host.ModelKeys]. The methods are
// safe for concurrent use.
type Keys interface {
	// SetKey stores the key of a provider, and makes new questions use it. An empty key removes the stored key. Errors:
	// not_found (no provider with this name has a key), invalid (the text cannot be a key), store, auth_required.
	SetKey(ctx context.Context, provider string, key tenon.Secret) error
	// HasKey reports whether a key of a provider is stored.
	HasKey(provider string) bool
}

// ProviderInfo is an entry of GET /api/v1/models/providers. It describes a provider with a key.
type ProviderInfo struct {
	Name     string `json:"name"`
	Variable string `json:"variable"`        // environment variable that can also contain the key
	Model    string `json:"model,omitempty"` // model of runs that name no model
	BaseURL  string `json:"base_url,omitempty"`
	Kept     bool   `json:"kept"` // tenon stores a key
}

// ProviderKeyRequest is the body of PUT /api/v1/models/providers/{provider}/key.
type ProviderKeyRequest struct {
	Key string `json:"key"`
}

func (c *call) providers() error {
	list := []ProviderInfo{}
	for _, name := range host.KeyedProviders() {
		p, _ := model.Lookup(name)
		info := ProviderInfo{Name: name, Variable: p.KeyEnv, Model: host.DefaultModel(name), BaseURL: p.BaseURL}
		info.Kept = c.cfg.Keys != nil && c.cfg.Keys.HasKey(name)
		list = append(list, info)
	}
	return c.answer(http.StatusOK, items(list))
}

func (c *call) putKey() error {
	var r ProviderKeyRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.Key == "" {
		return tenon.Errorf(tenon.CodeInvalid, "key is missing; DELETE removes the kept key")
	}
	return c.setKey(tenon.NewSecret(r.Key))
}

func (c *call) deleteKey() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	return c.setKey(tenon.Secret{})
}

func (c *call) setKey(key tenon.Secret) error {
	if c.cfg.Keys == nil {
		return tenon.Errorf(tenon.CodeInvalid, "this tenon keeps no keys: set the provider's variable")
	}
	if o := c.req.Header.Get("Origin"); o != "" && !c.isOwnOrigin(o) {
		return refuse(http.StatusForbidden, tenon.CodeDenied, "only tenon's own pages may set keys, not pages of "+
			"origin '%s'", o)
	}
	if err := c.cfg.Keys.SetKey(c.ctx(), c.req.PathValue("provider"), key); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
