package tenon

import "strings"

// Nearest returns the name that is most similar to s, or "" if none is similar.
func Nearest(s string, names []string) string {
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(s))
	}
	limit := 1 + max(1, min(len(s), 12)/3)
	best, at, begun := "", limit, -1
	if s == "" {
		return ""
	}
	for _, n := range names {
		dist, same := distance(plain(s), plain(n), limit), shared(s, n)
		if dist < at || dist == at && dist < limit && same > begun {
			best, at, begun = n, dist, same
		}
	}
	short := strings.TrimSuffix(plain(s), "s")
	if best == "" && len(short) >= 3 { // an abbreviation of exactly one name
		for _, n := range names {
			switch {
			case !strings.HasPrefix(plain(n), short):
			case best != "":
				return ""
			default:
				best = n
			}
		}
	}
	return best
}

// shared returns the length of the common prefix in bytes.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbours that turn a into
// b. It returns limit if there are at least so many.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := func(n int) []int { return make([]int, n+1) }
	before, prev, cur := row(len(b)), row(len(b)), row(len(b))
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
