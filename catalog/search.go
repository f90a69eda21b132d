package catalog

import (
	_ "embed"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Weights and bounds of the search. k1 and b have the usual values of BM25. The other weights were measured on
// LiveMCPBench (docs/figures.md, P11), where differences below .08 are noise: a word counts three times in a name,
// and less than once as a synonym or in the text of a server.
const (
	bmK1          = 1.2
	bmB           = 0.75
	nameWeight    = 3
	synonymWeight = 0.4
	serverWeight  = 0.3
	maxQueryTerms = 200
)

//go:embed synonyms.txt
var synonymText string

// Hit is a tool that was found.
type Hit struct {
	Tool  *tenon.Tool
	Score float64 // comparable within one search only
}

// Index finds tools by descriptions of what they do. It is immutable.
type Index struct {
	tools    []*tenon.Tool
	words    *ranking
	servers  *ranking
	serverOf []int32  // index of a tool → index of its server in servers
	sorted   []string // the words of the tools
	synonyms map[string][]string
}

// posting is one document that contains a word, and the score that the word adds to the document.
type posting struct {
	doc    int32
	weight float32
}

// ranking is a BM25 index over texts.
type ranking struct {
	postings map[string][]posting
	n        int
}

// Index returns the search index of the snapshot's tools, which the first call makes. Texts about servers come from
// [Source.About].
func (s *Snapshot) Index() *Index {
	s.indexed.Do(func() {
		about := map[string]string{}
		for _, listing := range s.listings {
			about[listing.source.Server] = listing.source.About
		}
		s.found = newIndex(s.tools, about)
	})
	return s.found
}

func newIndex(tools []*tenon.Tool, about map[string]string) *Index {
	split := splitter{}
	x := &Index{tools: tools, serverOf: make([]int32, len(tools)), synonyms: readSynonyms(synonymText)}
	docs := make([][]string, len(tools))
	at := map[string]int32{}
	var servers [][]string
	for i, t := range tools {
		n, ok := at[t.Server]
		if !ok {
			n = int32(len(servers))
			name := split.words(t.Server)
			doc := append(slices.Concat(name, name), split.words(about[t.Server])...)
			at[t.Server], servers = n, append(servers, doc)
		}
		x.serverOf[i] = n
		name := split.words(t.Remote)
		var doc []string
		for range nameWeight {
			doc = append(doc, name...)
		}
		doc = append(doc, split.words(t.Description)...)
		doc = append(doc, split.words(t.Server)...)
		for _, p := range Parameters(t) {
			doc = append(doc, split.words(p.Name)...)
		}
		docs[i] = doc
	}
	x.words, x.servers = newRanking(docs), newRanking(servers)
	x.sorted = slices.Sorted(maps.Keys(x.words.postings))
	return x
}

func newRanking(docs [][]string) *ranking {
	type count struct {
		doc int32
		n   int
	}
	all := map[string][]count{}
	total := 0
	for i, d := range docs {
		total += len(d)
		for _, w := range d {
			c := all[w]
			if len(c) > 0 && c[len(c)-1].doc == int32(i) {
				c[len(c)-1].n++
			} else {
				all[w] = append(c, count{int32(i), 1})
			}
		}
	}
	r := &ranking{postings: make(map[string][]posting, len(all)), n: len(docs)}
	average := math.Max(float64(total)/math.Max(float64(len(docs)), 1), 1)
	for w, counts := range all {
		df := float64(len(counts))
		idf := math.Log(1 + (float64(len(docs))-df+0.5)/(df+0.5))
		list := make([]posting, len(counts))
		for i, c := range counts {
			tf := float64(c.n)
			list[i] = posting{c.doc,
				float32(idf * tf * (bmK1 + 1) / (tf + bmK1*(1-bmB+bmB*float64(len(docs[c.doc]))/average)))}
		}
		r.postings[w] = list
	}
	return r
}

func (r *ranking) score(query []term) []float32 {
	scores := make([]float32, r.n)
	for _, t := range query {
		for _, p := range r.postings[t.word] {
			scores[p.doc] += t.weight * p.weight
		}
	}
	return scores
}

// term is a word of a query, with its weight.
type term struct {
	word   string
	weight float32
}

// Search returns at most k tools that fit a request in plain words, the best first. Tools of the same score are in the
// order of their names. The request may use any language of the descriptions; Chinese is searched by characters.
func (x *Index) Search(query string, k int) []Hit {
	terms := x.terms(query)
	words, servers := x.words.score(terms), x.servers.score(terms)
	hits := make([]Hit, 0, max(0, min(k, len(x.tools)))+1)
	for i, s := range words {
		if s == 0 || k <= 0 {
			continue // a match of the server alone is not enough
		}
		score := float64(s + serverWeight*servers[x.serverOf[i]])
		if len(hits) == k && score <= hits[k-1].Score {
			continue
		}
		at := len(hits)
		for at > 0 && hits[at-1].Score < score {
			at--
		}
		hits = slices.Insert(hits, at, Hit{x.tools[i], score})
		if len(hits) > k {
			hits = hits[:k]
		}
	}
	return hits
}

// terms splits a query into different words, and adds their synonyms. For a word that no tool has, it adds words of
// tools that begin with the word, or with which the word begins.
func (x *Index) terms(query string) []term {
	var list []term
	at := map[string]int{}
	add := func(w string, weight float32) {
		if i, ok := at[w]; ok {
			list[i].weight = max(list[i].weight, weight)
		} else if len(list) < 8*maxQueryTerms {
			at[w] = len(list)
			list = append(list, term{w, weight})
		}
	}
	words := tokens(query)
	words = words[:min(len(words), maxQueryTerms)]
	for _, w := range words {
		add(w, 1)
	}
	for _, w := range words {
		for _, s := range x.synonyms[w] {
			add(s, synonymWeight)
		}
		if x.words.postings[w] == nil && x.synonyms[w] == nil && len(w) >= 3 {
			for _, near := range x.beginning(w) {
				add(near, synonymWeight)
			}
		}
	}
	return list
}

// maxBeginnings is the maximum number of words that a beginning expands to.
const maxBeginnings = 10

// beginning returns the words of the tools that begin with w, and the words that w begins with.
func (x *Index) beginning(w string) []string {
	var list []string
	at, _ := slices.BinarySearch(x.sorted, w)
	for ; at < len(x.sorted) && len(list) < maxBeginnings && strings.HasPrefix(x.sorted[at], w); at++ {
		list = append(list, x.sorted[at])
	}
	for n := len(w) - 1; n >= 4; n-- {
		if x.words.postings[w[:n]] != nil {
			list = append(list, w[:n])
		}
	}
	return list
}

func readSynonyms(text string) map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		group := tokens(line)
		for _, w := range group {
			for _, v := range group {
				if v != w && !slices.Contains(m[w], v) {
					m[w] = append(m[w], v)
				}
			}
		}
	}
	return m
}
