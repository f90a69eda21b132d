package main

import (
	"math"
	"slices"
	"strconv"
)

// percentile returns the value below which p percent of the values are (nearest rank), or NaN for no values.
// It does not modify the slice.
func percentile[T int64 | float64](values []T, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return float64(sorted[min(max(i, 0), len(sorted)-1)])
}

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios divides the values of the same rounds.
func ratios(over, under []float64) []float64 {
	r := make([]float64, min(len(over), len(under)))
	for i := range r {
		r[i] = over[i] / under[i]
	}
	return r
}

// rounded rounds a value to four significant digits, and to an integer from 1,000 on.
func rounded(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	digits := 3 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits <= 0 {
		return math.Round(v)
	}
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// number formats a value without trailing zeros.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
