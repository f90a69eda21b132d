package model

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Price is models.NAME.price: what a model's tokens cost, in US dollars per
// million. A zero Price is that of a model that costs nothing.
type Price struct {
	// US dollars per million tokens of the prompt.
	Input float64 `yaml:"input" json:"input" min:"0" default:"0"`
	// US dollars per million tokens of the answer, reasoning included.
	Output float64 `yaml:"output" json:"output" min:"0" default:"0"`
	// US dollars per million tokens of the prompt that were read from a cache.
	CacheRead *float64 `yaml:"cache_read" json:"cache_read,omitempty" min:"0" default:"as input"`
	// US dollars per million tokens of the prompt that were written to a cache.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" min:"0" default:"as input"`
	// What a request with a long prompt costs instead, where the provider has a second price.
	Above *LongPrice `yaml:"above" json:"above,omitempty"`
}

// LongPrice is the price of whole requests whose prompt is long.
type LongPrice struct {
	// It holds for prompts of more tokens than this.
	Tokens int `yaml:"tokens" json:"tokens" min:"1"`
	// US dollars per million tokens of the prompt.
	Input float64 `yaml:"input" json:"input" min:"0" default:"0"`
	// US dollars per million tokens of the answer.
	Output float64 `yaml:"output" json:"output" min:"0" default:"0"`
	// US dollars per million tokens of the prompt that were read from a cache.
	CacheRead *float64 `yaml:"cache_read" json:"cache_read,omitempty" min:"0" default:"as input"`
	// US dollars per million tokens of the prompt that were written to a cache.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" min:"0" default:"as input"`
}

// Cost returns what one request costs that used so many tokens, rounded up to a
// millionth of a dollar. A price for a million tokens in dollars is one for a
// token in millionths of a dollar, the unit of [tenon.USD].
func (p Price) Cost(u tenon.Usage) tenon.USD {
	in, out, read, write := p.Input, p.Output, p.CacheRead, p.CacheWrite
	if a := p.Above; a != nil && u.Input > a.Tokens {
		in, out, read, write = a.Input, a.Output, a.CacheRead, a.CacheWrite
	}
	or := func(v *float64) float64 {
		if v == nil {
			return in
		}
		return *v
	}
	fresh := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	sum := float64(fresh)*in + float64(u.Output)*out + float64(u.CacheRead)*or(read) + float64(u.CacheWrite)*or(write)
	// 0.1 has no exact form: a sum that is whole but for that is whole.
	return tenon.Dollars(math.Ceil(sum-1e-6) / 1e6)
}

// bad names the first part of the price that cannot be right, or is "".
func (p Price) bad() string {
	wrong := func(vs ...float64) bool {
		for _, v := range vs {
			if !(v >= 0) || math.IsInf(v, 0) {
				return true
			}
		}
		return false
	}
	or0 := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	switch a := p.Above; {
	case wrong(p.Input, p.Output, or0(p.CacheRead), or0(p.CacheWrite)):
		return "a price is negative"
	case a != nil && a.Tokens < 1:
		return "above.tokens is missing"
	case a != nil && wrong(a.Input, a.Output, or0(a.CacheRead), or0(a.CacheWrite)):
		return "a price is negative"
	}
	return ""
}

// Prices is a table of prices: what is built in, and what a file of the user's
// says instead. It is safe for concurrent use, and nobody changes it.
type Prices struct {
	AsOf    string           // date of the built-in data, such as 2026-11-05
	Sources []string         // the providers' price lists
	Models  map[string]Price // by "provider/model"

	own map[string]Price // those of the user's file
}

//go:embed prices.json
var builtinPrices []byte

// BuiltinPriceFile returns the built-in table as a file to begin one's own with.
func BuiltinPriceFile() []byte { return bytes.Clone(builtinPrices) }

// maxPriceFile bounds a file of prices.
const maxPriceFile = 4 << 20

// LoadPrices returns the built-in table with the prices of a file over it; an
// empty path is the built-in table alone. Errors have code config.
func LoadPrices(path string) (*Prices, error) {
	t, err := ParsePrices(builtinPrices)
	if err != nil || path == "" {
		return t, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPriceFile+1))
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %w", err)
	case len(data) > maxPriceFile:
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %s is larger than %d MiB", path, maxPriceFile>>20)
	}
	own, err := ParsePrices(data)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %s: %w", path, err)
	}
	maps.Copy(t.Models, own.Models)
	t.own = own.Models
	return t, nil
}

// ParsePrices reads a file of prices: a JSON object whose member models maps
// "provider/model" to the members of [Price]. Unknown members are errors, of
// code config, because a price that is not read is worse than none.
func ParsePrices(data []byte) (*Prices, error) {
	var f struct {
		About   string           `json:"about"`
		AsOf    string           `json:"as_of"`
		Sources []string         `json:"sources"`
		Models  map[string]Price `json:"models"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, priceFileError(data, d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, priceFileError(data, d.InputOffset(), errors.New("there is more behind the table"))
	}
	seen := map[string]bool{}
	for name := range rawjson.Fields(rawjson.Field(data, "models")) {
		if seen[string(name)] {
			return nil, tenon.Errorf(tenon.CodeConfig, "models.%s: it is there twice", name)
		}
		seen[string(name)] = true
	}
	for name, p := range f.Models {
		if !strings.Contains(name, "/") {
			return nil, tenon.Errorf(tenon.CodeConfig, "models.%s: the key of a price is provider/model", name)
		}
		if why := p.bad(); why != "" {
			return nil, tenon.Errorf(tenon.CodeConfig, "models.%s: %s", name, why)
		}
	}
	return &Prices{AsOf: f.AsOf, Sources: f.Sources, Models: f.Models}, nil
}

// priceFileError says what is wrong with a file of prices, and in which line of it.
func priceFileError(data []byte, offset int64, err error) error {
	line := func(offset int64) int {
		return 1 + bytes.Count(data[:max(0, min(int(offset), len(data)))], []byte("\n"))
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: it ends too early", line(int64(len(data))))
	case errors.As(err, &syntax):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not JSON: %w", line(syntax.Offset), err)
	case errors.As(err, &kind):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: %s is of the wrong kind (%s)", line(kind.Offset), cmp.Or(kind.Field, "the whole"), kind.Value)
	}
	return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: %s", line(offset), strings.TrimPrefix(err.Error(), "json: "))
}

// Price returns the price of "provider/model"; false where none is known. A
// snapshot, such as gpt-5-2025-08-07, has the price of its model.
func (t *Prices) Price(model string) (Price, bool) { return lookupPrice(t.Models, model) }

func lookupPrice(m map[string]Price, model string) (Price, bool) {
	if p, ok := m[model]; ok {
		return p, true
	}
	p, ok := m[undated(model)]
	return p, ok
}

// undated takes -latest, -20250807, @20250807 or -2025-08-07 from the end of a
// model's name.
func undated(name string) string {
	if s, ok := strings.CutSuffix(name, "-latest"); ok {
		return s
	}
	end := len(name)
	digits := 0
	for end > 0 && digits < 8 && (name[end-1] >= '0' && name[end-1] <= '9' || name[end-1] == '-' && (digits == 2 || digits == 4)) {
		end--
		if name[end] != '-' {
			digits++
		}
	}
	if digits < 8 || end < 2 || !strings.HasPrefix(name[end:], "20") || name[end-1] != '-' && name[end-1] != '@' {
		return name
	}
	return name[:end-1]
}

// Cost returns what a request to "provider/model" costs that used so many
// tokens; false where no price is known.
func (t *Prices) Cost(model string, u tenon.Usage) (tenon.USD, bool) {
	p, ok := t.Price(model)
	if !ok {
		return 0, false
	}
	return p.Cost(u), true
}

// For returns a config's own price, else the user's for its provider and model,
// else the built-in one. A built-in price holds at the provider's own address
// only: what a proxy or another company asks for the same model nobody here knows.
func (t *Prices) For(c Config) (Price, bool) {
	if c.Price != nil {
		return *c.Price, true
	}
	p, known := Lookup(c.Provider)
	name := c.Provider + "/" + c.Model
	if price, ok := lookupPrice(t.own, name); ok || !known {
		return price, ok
	}
	if c.BaseURL != "" && hostOf(c.BaseURL) != hostOf(p.BaseURL) {
		return Price{}, false
	}
	return t.Price(name)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
