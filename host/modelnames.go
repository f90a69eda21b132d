package host

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// People type names of models as other programs write them: without a provider, or with a typo. The error about a model
// that does not exist suggests the name that was probably meant.

// unknown is the error of a name that is no model.
func (m *models) unknown(name string) error {
	entries := m.h.config.ModelNames()
	shown := tenon.Visible(tenon.Shorten(name, maxModelName))
	if near := m.near(name, entries); near != "" {
		return tenon.Errorf(tenon.CodeNotFound, "there is no model '%s'; did you mean '%s'?", shown,
			tenon.Visible(tenon.Shorten(near, maxModelName)))
	}
	known := ""
	if len(entries) > 0 {
		known = "an entry of models (" + strings.Join(entries, ", ") + "), "
	}
	return tenon.Errorf(tenon.CodeNotFound, "there is no model '%s': name %sprovider/name with a provider of %s, or "+
		"script:FILE", shown, known, strings.Join(model.ProviderNames(), ", "))
}

// maxModelName bounds a name in an error, in characters.
const maxModelName = 200

// near returns the name that was probably meant, or "" if there is none.
func (m *models) near(name string, entries []string) string {
	provider, id, ok := strings.Cut(name, "/")
	if ok {
		// A provider that is written wrong, or one that a router has as part of the name.
		if p := tenon.Nearest(provider, model.ProviderNames()); p != "" && p != provider && id != "" {
			return p + "/" + id
		}
		return ""
	}
	if near := tenon.Nearest(name, append(slices.Clone(entries), DemoModel)); near != "" {
		return near
	}
	return m.maker(name)
}

// maker adds the provider to the name of a model, if the table of prices has the model, or another one of its family:
// gpt-9 is of the provider of gpt-5.
func (m *models) maker(name string) string {
	prices, err := m.prices()
	if err != nil || name == "" {
		return "" // a wrong file of prices is reported where it is used
	}
	family, _, _ := strings.Cut(name, "-")
	found := ""
	for _, key := range slices.Sorted(maps.Keys(prices.Models)) {
		provider, id, _ := strings.Cut(key, "/")
		switch other, _, _ := strings.Cut(id, "-"); {
		case id == name:
			return key
		case found == "" && strings.EqualFold(other, family):
			found = provider + "/" + name
		}
	}
	return found
}
