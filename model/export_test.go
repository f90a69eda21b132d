package model

import "slices"

// Servers returns the table of the servers that differ from their provider's API.
func Servers() []Server { return slices.Clone(servers[:]) }

// SearchPrice is a row of the table of prices of searches.
type SearchPrice struct {
	Provider, Family string
	Rate             float64
}

// SearchPrices returns the table of prices of searches.
func SearchPrices() (list []SearchPrice) {
	for _, p := range searchPrices {
		list = append(list, SearchPrice{p.provider, p.family, p.rate})
	}
	return list
}

// MergeMembers merges the members of an object into an object without its closing brace.
func MergeMembers(head, more []byte) []byte { return mergeMembers(head, more) }

// SettingsOf returns the keys of models.NAME and the settings of questions that only some wire formats can express. For
// each, members has the member of the request in each wire format.
func SettingsOf() (keys []string, members map[string]map[string]string) {
	members = map[string]map[string]string{}
	add := func(key, wire, member string) {
		if members[key] == nil {
			keys = append(keys, key)
			members[key] = map[string]string{}
		}
		members[key][wire] = member
	}
	for wire, w := range samplingWires {
		add("stop", wire, w.stop)
		add("seed", wire, w.seed)
		add("presence_penalty", wire, w.presence)
		add("frequency_penalty", wire, w.frequency)
	}
	for _, s := range settings {
		for wire := range samplingWires {
			add(s.key, wire, s.paths[wire])
		}
	}
	slices.Sort(keys)
	return keys, members
}
