package catalog

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenonhq/tenon"
)

// fuseRank is the constant of reciprocal rank fusion (Cormack and others, 2009).
const fuseRank = 60

// fuseDepth is the number of tools of each ranking that are used.
const fuseDepth = 50

// SearchWith returns the result of [Index.Search], fused with a ranking by meaning. vector is the vector of the
// query, and of returns the vector of a tool, or nil if it has none. The score of a tool is the sum of its reciprocal
// ranks.
func (x *Index) SearchWith(query string, vector []float32, of func(*tenon.Tool) []float32, k int) []Hit {
	type near struct {
		tool  *tenon.Tool
		score float64
	}
	var byMeaning []near
	for _, t := range x.tools {
		if v := of(t); len(v) == len(vector) && len(v) > 0 {
			byMeaning = append(byMeaning, near{t, cosine(vector, v)})
		}
	}
	slices.SortStableFunc(byMeaning, func(a, b near) int { return cmp.Compare(b.score, a.score) })
	scores := map[*tenon.Tool]float64{}
	for i, h := range x.Search(query, fuseDepth) {
		scores[h.Tool] += 1 / float64(fuseRank+i+1)
	}
	for i, n := range byMeaning[:min(len(byMeaning), fuseDepth)] {
		scores[n.tool] += 1 / float64(fuseRank+i+1)
	}
	var hits []Hit
	for _, t := range x.tools { // in the order of names, so that equal scores stay in it
		if s, ok := scores[t]; ok {
			hits = append(hits, Hit{t, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(len(hits), max(k, 0))]
}

// cosine is the cosine of the angle between two vectors of the same length, or 0 if one of them has no direction.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 || math.IsNaN(dot) || math.IsInf(dot, 0) {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// MeaningText returns the text of a tool from which its embedding is made.
func MeaningText(t *tenon.Tool) string {
	text := t.Remote + ": " + t.Description
	for i, p := range Parameters(t) {
		if i == 0 {
			text += "\nArguments:"
		}
		text += " " + p.Name
	}
	return tenon.Shorten(text, maxMeaning)
}

// maxMeaning bounds a tool's text, in characters: small models read 512 tokens.
const maxMeaning = 1500
