package ziptest

import (
	"compress/flate"
	"fmt"
	"strings"
)

// Case is an archive.
type Case struct {
	Name string
	Zip  []byte
	Want string // a part of the error; "" for a legal archive
	// Deep means that the fault is in the content, so that only a program that reads the file '0' finds it.
	Deep bool
	// Large means that the archive takes much memory or disk in a careless program.
	Large bool
}

// Legal returns archives of the file name with its content, as programs of all kinds write them.
func Legal(name, content string) []Case {
	good := file{name: name, text: content}
	packed := file{name: name, text: content, method: deflate}
	with := func(change func(f *file)) archive {
		f := packed
		change(&f)
		return archive{files: []file{f, {name: "0", text: "data", method: deflate}}}
	}
	times := extra(0x5455, "\x03\x00\x00\x00\x00\x00\x00\x00\x00") +
		extra(0x7875, "\x01\x04\x00\x00\x00\x00\x04\x00\x00\x00\x00")
	many := repeat(5000, func(i int) file { return file{name: fmt.Sprintf("data/%05d", i)} })
	inner, _ := zeros(64 << 20)
	list := []struct {
		name string
		zip  archive
	}{
		{"stored", archive{files: []file{good}}},
		{"deflated", archive{files: []file{packed}}},
		{"descriptor of 12 bytes", with(func(f *file) { f.descriptor = 12 })},
		{"descriptor of 16 bytes", with(func(f *file) { f.descriptor = 16 })},
		{"descriptor of 20 bytes", with(func(f *file) { f.descriptor = 20 })},
		{"descriptor of 24 bytes", with(func(f *file) { f.descriptor = 24 })},
		{"ZIP64 entry", with(func(f *file) { f.long = true })},
		{"ZIP64 end", archive{files: []file{packed}, end64: true}},
		{"ZIP64 everywhere", archive{files: []file{{name: name, text: content, long: true}}, end64: true}},
		{"times and owners", with(func(f *file) { f.extra, f.creator, f.attributes = times, 3, regular })},
		{"other local extra", with(func(f *file) { f.localExtra = times })},
		{"aligned", with(func(f *file) { f.localExtra = "\x00\x00\x00" })},
		{"Unicode path", with(func(f *file) { f.extra = extra(0x7075, "\x01\x00\x00\x00\x00"+name) })},
		{"mode of Python", with(func(f *file) { f.creator, f.attributes = 3, 0o600<<16 })},
		{"folders", archive{files: []file{{name: "data/", creator: 3, attributes: 0o040755 << 16},
			{name: "data/a", text: "a"},
			{name: "d/", attributes: 0x10}, packed}}},
		{"comments", archive{files: []file{{name: name, text: content, comment: "a file"}}, comment: "an archive"}},
		{"no content", archive{files: []file{packed, {name: "0"}, {name: "1", method: deflate, descriptor: 16}}}},
		{"names of scripts", archive{files: []file{packed, {name: "data/\u0646\u200c\u0627.txt"}, {name: "data/：é"}}}},
		{"many files", archive{files: append(many, packed)}},
		{"an archive inside", archive{files: []file{packed, {name: "0.zip", text: string(archive{files: []file{
			{name: "../bomb", raw: inner, method: deflate, claims: 64 << 20}}}.bytes())}}}},
	}
	cases := make([]Case, len(list))
	for i, l := range list {
		cases[i] = Case{Name: l.name, Zip: l.zip.bytes()}
	}
	return cases
}

// Hostile returns archives of the file name with its content, each with one fault.
func Hostile(name, content string) []Case {
	good := file{name: name, text: content, method: deflate}
	large := sizes(good)
	list := append(append(large, names(good)...), records(good)...)
	cases := make([]Case, len(list))
	for i, l := range list {
		cases[i] = Case{Name: l.name, Zip: l.zip.bytes(), Want: l.want, Deep: l.deep, Large: i < len(large)}
	}
	return cases
}

type hostile struct {
	name string
	zip  archive
	want string
	deep bool
}

// sizes are archives that take much memory or disk.
func sizes(good file) []hostile {
	bomb, _ := zeros(200 << 20)
	total, _ := zeros(256 << 20)
	empty := pack(nothing)
	of := func(files ...file) archive { return archive{files: append([]file{good}, files...)} }
	return []hostile{
		{"a million entries", archive{files: []file{good}, again: 1_000_000, end64: true}, "has more than", false},
		{"claims 2^40 entries", archive{files: []file{good}, end64: true, change6: func(e []byte) {
			le.PutUint64(e[24:], 1<<40)
			le.PutUint64(e[32:], 1<<40)
		}}, "has more than", false},
		{"claims 9999 entries", archive{files: []file{good}, change: func(e []byte) {
			le.PutUint16(e[8:], 9999)
			le.PutUint16(e[10:], 9999)
		}}, "too short for 9999 entries", false},
		{"long directory", archive{files: append(repeat(200, func(i int) file {
			return file{name: fmt.Sprint(i), comment: strings.Repeat("c", 65535)}
		}), good)}, "its directory has more than", false},
		{"more entries than it says", archive{files: []file{good, {name: "0"}}, change: func(e []byte) {
			le.PutUint16(e[8:], 1)
			le.PutUint16(e[10:], 1)
		}}, "more than 1 entries", false},
		{"5 GiB of zeros", of(repeat(20, func(i int) file {
			return file{name: fmt.Sprint(i), raw: total, method: deflate, claims: 256 << 20}
		})...), "the unpacked files exceed", false},
		{"content larger than declared", of(file{name: "0", raw: bomb, method: deflate, claims: 1 << 20}),
			"'0' is larger than its declared", true},
		{"content smaller than declared", of(file{name: "0", text: "abc", method: deflate, claims: 900}),
			"'0' is smaller than its declared", true},
		{"impossible ratio", of(file{name: "0", raw: empty, method: deflate, claims: 200 << 20}),
			"cannot pack so many", false},
		{"stored with two sizes", of(file{name: "0", text: "abc", claims: 1 << 20}), "two sizes", false},
		{"one content for two files", of(file{name: "0", text: "shared", alias: "1"}), "share bytes", false},
		{"quoted overlap", of(file{name: "0", inner: []file{{name: "1", text: "x"}}}), "'0' and '1' share bytes",
			false},
		{"content behind the content", of(file{name: "0", raw: append(pack(nothing), "hidden"...), method: deflate}),
			"bytes follow the compressed content", true},
		{"damaged content", of(file{name: "0", text: "abc", raw: []byte{0xff, 0xff, 0xff}, method: deflate}),
			"compressed content is damaged", true},
		{"wrong checksum", of(file{name: "0", text: "abc", badSum: true}), "'0' has a wrong checksum", true},
	}
}

// names are archives with names that lead out or hide something, and with entries that are not files.
func names(good file) []hostile {
	list := []hostile{
		{"too long", archive{files: []file{good, {name: strings.Repeat("n", 1001)}}}, "of more than 1000 bytes", false},
		{"twice", archive{files: []file{good, {name: "0"}, {name: "0"}}}, "the file '0' occurs twice", false},
		{"case", archive{files: []file{good, {name: "data/A"}, {name: "DATA/a"}}},
			"are the same file if case is ignored", false},
		{"case of the main file", archive{files: []file{good, {name: strings.ToUpper(good.name)}}},
			"are the same file if case is ignored", false},
		{"normal form", archive{files: []file{good, {name: "\u00e9"}, {name: "e\u0301"}}},
			"are the same file if case is ignored", false},
		{"width", archive{files: []file{good, {name: "a"}, {name: "\uff41"}}}, "are the same file if case is ignored",
			false},
		{"dot at the end", archive{files: []file{good, {name: "a"}, {name: "a."}}},
			"are the same file if case is ignored", false},
		{"joiner", archive{files: []file{good, {name: "a"}, {name: "a\u200d"}}},
			"are the same file if case is ignored", false},
		{"file and folder", archive{files: []file{good, {name: "0/a"}, {name: "0-b"}, {name: "0"}}},
			"'0' is both a file and a folder", false},
		{"link", archive{files: []file{good, {name: "0", text: "/etc/passwd", creator: 3, attributes: link}}},
			"links are not unpacked", false},
		{"link of another creator", archive{files: []file{good, {name: "0", text: "/etc", attributes: link}}},
			"links are not unpacked", false},
		{"link of NTFS", archive{files: []file{good, {name: "0", creator: 10, attributes: 0x400}}},
			"links are not unpacked", false},
		{"pipe", archive{files: []file{good, {name: "0", creator: 3, attributes: pipe}}}, "is not a regular file",
			false},
		{"folder with content", archive{files: []file{good, {name: "0/", text: "x"}}}, "the folder '0/' has content",
			false},
		{"folder with the name of a file", archive{files: []file{good, {name: "0", attributes: 0x10}}},
			"a folder with the name of a file", false},
		{"two names", archive{files: []file{good, {name: "0", extra: extra(0x7075, "\x01\x00\x00\x00\x00../x")}}},
			"two different names", false},
	}
	for name, n := range map[string]string{"parent": "../evil", "deep parent": "a/../../evil",
		"absolute": "/tmp/evil", "drive": "C:evil",
		"drive and folder": `C:\evil`, "backslash": `..\evil`, "stream of NTFS": "a:b", "dot": "./a",
		"empty component": "a//b",
		"share":           `\\host\share`, "no name": "/", "wide parent": "\uff0e\uff0e/evil",
		"two dot leader": "\u2025/evil"} {
		list = append(list, hostile{name, archive{files: []file{good, {name: n}}},
			"outside the pack: it leads out of its folder", false})
	}
	for name, n := range map[string]string{"NUL": "a\x00.txt", "line break": "a\nb", "direction": "a\u202etxt.exe",
		"escape": "a\x1b[2J", "zero width": "a\u200bb"} {
		list = append(list, hostile{name, archive{files: []file{good, {name: n}}}, "hidden characters", false})
	}
	return append(list, hostile{"not UTF-8", archive{files: []file{good, {name: "a\xff"}}}, "not UTF-8", false})
}

// records are archives with records that disagree, and with bytes outside all entries.
func records(good file) []hostile {
	of := func(f file) archive { f.name = "0"; return archive{files: []file{good, f}} }
	return []hostile{
		{"encrypted", of(file{flags: 1}), "'0' is encrypted", false},
		{"strongly encrypted", of(file{flags: 1 << 6}), "'0' is encrypted", false},
		{"masked headers", of(file{flags: 1 << 13}), "'0' is encrypted", false},
		{"patch", of(file{flags: 1 << 5}), "'0' is a patch", false},
		{"bzip2", of(file{method: 12}), "compression method 12", false},
		{"other local name", of(file{localName: "1"}), "disagree on its name", false},
		{"longer local name", of(file{localName: "../evil"}), "disagree on its name", false},
		{"other local size", of(file{text: "abc", localSize: 7}), "disagree on its size or checksum", false},
		{"other descriptor", of(file{text: "abc", descriptor: 16, lyingTail: true}),
			"disagree on its size or checksum", false},
		{"damaged extra field", of(file{extra: "\x01\x00\xff\x7f"}), "an extra field of '0' is damaged", false},
		{"ZIP64 field twice", of(file{extra: extra(1, strings.Repeat("\x00", 24)), long: true}), "ZIP64 field twice",
			false},
		{"before the first entry", archive{files: []file{good}, prefix: "#!/bin/sh\n"}, "belong to no file", false},
		{"after the end", archive{files: []file{good}, suffix: "trailing"}, "bytes follow its end", false},
		{"between entries", archive{files: []file{good, {name: "0", gap: "hidden"}}},
			"6 bytes before '0' belong to no file", false},
		{"before the directory", archive{files: []file{good}, change: func(e []byte) {
			le.PutUint32(e[16:], le.Uint32(e[16:])-4)
		}}, "not directly before its end record", false},
		{"two ends", archive{files: []file{good}, comment: second(good)}, "it has 2 end records", false},
		{"split", archive{files: []file{good}, change: func(e []byte) { le.PutUint16(e[4:], 1) }}, "split archive",
			false},
		{"ends disagree", archive{files: []file{good}, end64: true, change: func(e []byte) {
			le.PutUint16(e[8:], 7)
			le.PutUint16(e[10:], 7)
		}}, "its two end records disagree", false},
		{"ZIP64 end outside", archive{files: []file{good}, end64: true, change6: func(e []byte) {
			le.PutUint64(e[48:], 1<<62)
		}}, "its directory is outside the archive", false},
	}
}

// second returns a complete archive in a comment: programs that search from the start read it.
func second(good file) string {
	return string(archive{files: []file{{name: good.name, text: "another"}}}.bytes())
}

// nothing writes no content.
func nothing(*flate.Writer) {}
