package model

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// ReadCost returns the provider's own cost of a request from the usage of an answer, or nil. It reads these forms:
//
//	{"cost": 0.0125}                     OpenRouter, Avian: dollars
//	{"cost": {"total_cost": 0.0125}}     Perplexity: dollars
//	{"cost_in_usd_ticks": 125000000}     xAI: 10,000,000,000 ticks are a dollar
//
// A negative cost is not a cost.
func ReadCost(usage []byte) *tenon.USD {
	var cost tenon.USD
	raw := rawjson.Field(usage, "cost")
	if len(raw) > 0 && raw[0] == '{' {
		raw = rawjson.Field(raw, "total_cost")
	}
	if rawjson.IsNull(raw) {
		ticks, ok := rawjson.Int(rawjson.Field(usage, "cost_in_usd_ticks"))
		if !ok || ticks < 0 {
			return nil
		}
		cost = tenon.Dollars(float64(ticks) / ticksPerDollar)
		return &cost
	}
	if cost.UnmarshalJSON(raw) != nil || cost < 0 {
		return nil
	}
	return &cost
}

// ticksPerDollar is the unit of xAI's costs.
const ticksPerDollar = 1e10
