package main

import (
	"slices"
	"strings"
)

// didYouMean returns "; did you mean 'x'?" where one of the names is close to
// what was given, else the names themselves where they are few, else "".
func didYouMean(given string, names []string) string {
	best, distance := "", max(len(given)/3, 1)+1
	for _, n := range names {
		d := editDistance(strings.ToLower(given), strings.ToLower(n))
		if given != "" && strings.HasPrefix(strings.ToLower(n), strings.ToLower(given)) {
			d = min(d, 1)
		}
		if d < distance {
			best, distance = n, d
		}
	}
	switch {
	case best != "":
		return "; did you mean '" + best + "'?"
	case len(names) > 0 && len(names) <= 20:
		names = slices.Sorted(slices.Values(names))
		return "; there are: " + strings.Join(names, ", ")
	}
	return ""
}

// editDistance counts the letters to insert, remove, replace or swap with their
// neighbour between two words (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, prev := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(s); i++ {
		cur := make([]int, len(t)+1)
		cur[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(t)]
}
