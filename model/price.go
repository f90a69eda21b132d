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
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Price is models.NAME.price: the price of a model's tokens in US dollars per million. The zero
// Price means that the model is free.
type Price struct {
	// US dollars per million input tokens.
	Input float64 `yaml:"input" json:"input" min:"0" default:"0"`
	// US dollars per million output tokens, including reasoning.
	Output float64 `yaml:"output" json:"output" min:"0" default:"0"`
	// US dollars per million input tokens that are read from a cache.
	CacheRead *float64 `yaml:"cache_read" json:"cache_read,omitempty" min:"0" default:"as input"`
	// US dollars per million input tokens that are written to a cache.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" min:"0" default:"as input"`
	// US dollars per thousand web searches of the provider's own tool, as far as the provider reports their number.
	// Default: 10 for Anthropic and OpenAI, 14 for Gemini 3 and later, 35 for older Gemini (one search a request), 0
	// for others. Gemini's free searches are not subtracted, because only the provider counts them; 0 ignores searches.
	Searches *float64 `yaml:"searches" json:"searches,omitempty" min:"0"`
	// Price of requests with a long prompt, for providers that have a second price.
	Above *LongPrice `yaml:"above" json:"above,omitempty"`
}

// LongPrice is the price of requests with a long prompt. It applies to the whole request.
type LongPrice struct {
	// The price applies to prompts with more tokens than this.
	Tokens int `yaml:"tokens" json:"tokens" min:"1"`
	// US dollars per million input tokens.
	Input float64 `yaml:"input" json:"input" min:"0" default:"0"`
	// US dollars per million output tokens.
	Output float64 `yaml:"output" json:"output" min:"0" default:"0"`
	// US dollars per million input tokens that are read from a cache.
	CacheRead *float64 `yaml:"cache_read" json:"cache_read,omitempty" min:"0" default:"as input"`
	// US dollars per million input tokens that are written to a cache.
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty" min:"0" default:"as input"`
}

// Cost returns the cost of a request with the given usage, rounded up to a millionth of a dollar. A
// price in dollars per million tokens equals the price per token in millionths of a dollar, the
// unit of [tenon.USD].
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
	sum := float64(fresh)*in + float64(u.Output)*out +
		float64(u.CacheRead)*or(read) + float64(u.CacheWrite)*or(write)
	if p.Searches != nil {
		sum += float64(u.Searches) * *p.Searches * 1000
	}
	// Decimal fractions such as 0.1 are inexact, so ignore a tiny excess over a whole number.
	return tenon.Dollars(math.Ceil(sum-1e-6) / 1e6)
}

// Saved returns what tokens that were read from and written to a cache would have cost more as ordinary input. It is
// negative if writing cost more than reading saved. It uses the price of short prompts.
func (p Price) Saved(read, write int) tenon.USD {
	saved := 0.0
	if p.CacheRead != nil {
		saved += float64(read) * (p.Input - *p.CacheRead)
	}
	if p.CacheWrite != nil {
		saved += float64(write) * (p.Input - *p.CacheWrite)
	}
	return tenon.Dollars(math.Round(saved) / 1e6)
}

// bad describes a mistake in the price. It returns "" if there is none.
func (p Price) bad() string {
	wrong := func(vs ...float64) bool {
		return slices.ContainsFunc(vs, func(v float64) bool { return !(v >= 0) || math.IsInf(v, 0) })
	}
	or0 := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	switch a := p.Above; {
	case wrong(p.Input, p.Output, or0(p.CacheRead), or0(p.CacheWrite), or0(p.Searches)):
		return "a price is negative"
	case a != nil && a.Tokens < 1:
		return "above.tokens is missing"
	case a != nil && wrong(a.Input, a.Output, or0(a.CacheRead), or0(a.CacheWrite)):
		return "a price is negative"
	}
	return ""
}

// AtLeast returns a price with, for each rate, the higher rate of p and o.
func (p Price) AtLeast(o Price) Price {
	input, output := max(p.Input, o.Input), max(p.Output, o.Output)
	out := Price{Input: input, Output: output, CacheRead: higher(p.CacheRead, p.Input, o.CacheRead, o.Input),
		CacheWrite: higher(p.CacheWrite, p.Input, o.CacheWrite, o.Input),
		Searches:   higher(p.Searches, 0, o.Searches, 0)}
	switch {
	case p.Above == nil && o.Above == nil:
		return out
	case p.Above == nil:
		p.Above = &LongPrice{o.Above.Tokens, p.Input, p.Output, p.CacheRead, p.CacheWrite}
	case o.Above == nil:
		o.Above = &LongPrice{p.Above.Tokens, o.Input, o.Output, o.CacheRead, o.CacheWrite}
	}
	a, b := p.Above, o.Above
	out.Above = &LongPrice{min(a.Tokens, b.Tokens), max(a.Input, b.Input), max(a.Output, b.Output),
		higher(a.CacheRead, a.Input, b.CacheRead, b.Input), higher(a.CacheWrite, a.Input, b.CacheWrite, b.Input)}
	return out
}

// higher returns the higher of two cache rates. A rate that is nil equals the rate of the input.
func higher(a *float64, inputA float64, b *float64, inputB float64) *float64 {
	if a == nil && b == nil {
		return nil
	}
	if a == nil {
		a = &inputA
	}
	if b == nil {
		b = &inputB
	}
	rate := max(*a, *b)
	return &rate
}

// Prices is a table of prices: the built-in prices, overridden by the user's file. It is immutable
// and safe for concurrent use.
type Prices struct {
	AsOf    string           // the date of the built-in prices, such as 2026-11-05
	Sources []string         // the providers' price lists
	Models  map[string]Price // by "provider/model"

	own map[string]Price // the prices in the user's file
}

//go:embed prices.json
var builtinPrices []byte

// BuiltinPriceFile returns the built-in table as a file that users can edit.
func BuiltinPriceFile() []byte { return bytes.Clone(builtinPrices) }

// MaxPriceFile bounds the size of a price file.
const MaxPriceFile = 4 << 20

// LoadPrices returns the built-in table, overridden by the prices in a file. If path is empty, it
// returns only the built-in table. Errors have code config.
func LoadPrices(path string) (*Prices, error) {
	if path == "" {
		return ParsePrices(builtinPrices)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxPriceFile+1))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %w", err)
	}
	return PricesFrom(path, data)
}

// PricesFrom is LoadPrices for a file that the caller has read.
func PricesFrom(path string, data []byte) (*Prices, error) {
	if len(data) > MaxPriceFile {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %s is larger than %d MiB", path, MaxPriceFile>>20)
	}
	t, err := ParsePrices(builtinPrices)
	if err != nil {
		return nil, err
	}
	own, err := ParsePrices(data)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "prices: %s: %w", path, err)
	}
	maps.Copy(t.Models, own.Models)
	t.own = own.Models
	return t, nil
}

// ParsePrices reads a price file: a JSON object whose member models maps "provider/model" to the
// members of [Price]. Unknown members are errors, because a misspelled price would be ignored.
// Errors have code config.
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
		return nil, priceFileError(data, d.InputOffset(), errors.New("text follows the table"))
	}
	seen := map[string]bool{}
	for name := range rawjson.Fields(rawjson.Field(data, "models")) {
		if seen[string(name)] {
			return nil, tenon.Errorf(tenon.CodeConfig, "models.%s: duplicate key", name)
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

// priceFileError adds the line to an error of a price file.
func priceFileError(data []byte, offset int64, err error) error {
	line := func(offset int64) int {
		return 1 + bytes.Count(data[:max(0, min(int(offset), len(data)))], []byte("\n"))
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: it ends too early",
			line(int64(len(data))))
	case errors.As(err, &syntax):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not JSON: %w", line(syntax.Offset), err)
	case errors.As(err, &kind):
		return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: %s has the wrong type (%s)",
			line(kind.Offset), cmp.Or(kind.Field, "the file"), kind.Value)
	}
	return tenon.Errorf(tenon.CodeConfig, "line %d: not a table of prices: %s",
		line(offset), strings.TrimPrefix(err.Error(), "json: "))
}

// Price returns the price of "provider/model", and false if it is unknown. A snapshot such as
// gpt-5-2025-08-07 has the price of its model.
func (t *Prices) Price(model string) (Price, bool) { return lookupPrice(t.Models, model) }

func lookupPrice(m map[string]Price, model string) (Price, bool) {
	if p, ok := m[model]; ok {
		return p, true
	}
	p, ok := m[undated(model)]
	return p, ok
}

// undated removes -latest, -20250807, @20250807 or -2025-08-07 from the end of a model's name.
func undated(name string) string {
	if s, ok := strings.CutSuffix(name, "-latest"); ok {
		return s
	}
	end := len(name)
	digits := 0 // of the date
	for end > 0 && digits < 8 {
		digit := name[end-1] >= '0' && name[end-1] <= '9'
		dash := name[end-1] == '-' && (digits == 2 || digits == 4)
		if !digit && !dash {
			break
		}
		end--
		if name[end] != '-' {
			digits++
		}
	}
	separated := end >= 2 && (name[end-1] == '-' || name[end-1] == '@')
	if digits < 8 || !separated || !strings.HasPrefix(name[end:], "20") {
		return name
	}
	return name[:end-1]
}

// Cost returns the cost of a request to "provider/model" with the given usage, and false if the
// price is unknown.
func (t *Prices) Cost(model string, u tenon.Usage) (tenon.USD, bool) {
	p, ok := t.Price(model)
	if !ok {
		return 0, false
	}
	return p.Cost(u), true
}

// For returns the price of a config: its own price, otherwise the price in the user's file,
// otherwise the built-in price. A built-in price applies only at the provider's default address,
// because a proxy or another company may charge a different price.
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
	price, ok := t.Price(name)
	if rate := searchPrice(c); ok && rate > 0 && price.Searches == nil && len(c.Tools) > 0 {
		price.Searches = &rate
	}
	return price, ok
}

// searchPrices are the prices of a thousand web searches in US dollars, by provider and the beginning of the model's
// name. The first row that matches counts. Sources: the price lists in prices.json. Gemini's list ("Grounding with
// Google Search", as of September 2026) has 1,500 free requests a day for models up to 2.5, of which each counts once,
// and 5,000 free requests a month for Gemini 3, of which each query counts. All projects and models of a family share
// them, so one program cannot know how many are left. The cost is therefore an upper bound.
var searchPrices = [...]struct {
	provider, family string
	rate             float64
}{
	{"anthropic", "", 10},
	{"openai", "", 10},
	{"gemini", "gemini-1.", 35},
	{"gemini", "gemini-2.", 35},
	{"gemini", "gemini-", 14},
}

// searchPrice returns the price of a thousand searches of a model, or 0 if it is unknown.
func searchPrice(c Config) float64 {
	for _, p := range searchPrices {
		if p.provider == c.Provider && strings.HasPrefix(c.Model, p.family) {
			return p.rate
		}
	}
	return 0
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
