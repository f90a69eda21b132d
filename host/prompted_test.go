package host_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func TestReadPrompt(t *testing.T) {
	for name, tt := range map[string]struct {
		raw, want string
		code      tenon.Code
	}{
		"one message":         {`{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}]}`, "Hi", ""},
		"a conversation":      {`{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}},{"role":"assistant","content":{"type":"text","text":"Yes?"}}]}`, "User: Hi\n\nAssistant: Yes?", ""},
		"a role with escapes": {`{"messages":[{"role":"\u001b[2J","content":{"type":"text","text":"Hi"}}]}`, `\u{1b}[2J: Hi`, ""},
		"a role of one rune":  {`{"messages":[{"role":"é","content":{"type":"text","text":"Hi"}}]}`, "é: Hi", ""},
		"only a picture":      {`{"messages":[{"role":"user","content":{"type":"image","mimeType":"image/png","data":"AAAA"}}]}`, "", ""},
		"empty":               {`{"messages":[]}`, "", tenon.CodeInvalid},
		"no JSON":             {`{`, "", tenon.CodeProtocol},
		"null":                {`null`, "", tenon.CodeProtocol},
		"messages null":       {`{"messages":null}`, "", tenon.CodeProtocol},
		"no messages":         {`{}`, "", tenon.CodeProtocol},
		"messages no array":   {`{"messages":{}}`, "", tenon.CodeProtocol},
		"a message null":      {`{"messages":[null]}`, "", tenon.CodeProtocol},
		"content a text":      {`{"messages":[{"role":"user","content":"Hi"}]}`, "", tenon.CodeProtocol},
		"content an array":    {`{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`, "", tenon.CodeProtocol},
		"content null":        {`{"messages":[{"role":"user","content":null}]}`, "", tenon.CodeProtocol},
		"no content":          {`{"messages":[{"role":"user"}]}`, "", tenon.CodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := host.ReadPrompt("s", "p", json.RawMessage(tt.raw))
			if got.Text != tt.want || tenon.ErrorCode(err) != tt.code {
				t.Errorf("%q, %v", got.Text, err)
			}
			if err != nil && !strings.Contains(err.Error(), "prompt 'p' of server 's'") {
				t.Errorf("the error does not name the server: %v", err)
			}
		})
	}
}

func TestContentParts(t *testing.T) {
	data := func(b string) string { return base64.StdEncoding.EncodeToString([]byte(b)) }
	for name, tt := range map[string]struct {
		content tenon.Content
		want    string
		code    tenon.Code
	}{
		"a picture":         {tenon.Content{MimeType: "image/png", Data: data("\x89PNG")}, tenon.PartImage, ""},
		"a video":           {tenon.Content{MimeType: "video/mp4", Data: data("\x00ftyp")}, tenon.PartFile, ""},
		"a text as bytes":   {tenon.Content{MimeType: "application/x-sh", Data: data("echo")}, tenon.PartText, ""},
		"bytes":             {tenon.Content{MimeType: "application/zip", Data: data("PK\x00")}, "", tenon.CodeInvalid},
		"no base64":         {tenon.Content{MimeType: "image/png", Data: "%"}, "", tenon.CodeProtocol},
		"20 MiB":            {tenon.Content{MimeType: "image/png", Data: strings.Repeat("A", 20<<20/3*4)}, tenon.PartImage, ""},
		"more than 20 MiB":  {tenon.Content{MimeType: "image/png", Data: strings.Repeat("A", 21<<20/3*4)}, "", tenon.CodeTooLarge},
		"too large and odd": {tenon.Content{MimeType: "image/png", Data: strings.Repeat("%", 40<<20)}, "", tenon.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := host.ContentParts("s", "file:///x", []tenon.Content{tt.content})
			if tenon.ErrorCode(err) != tt.code || err == nil && got[0].Type != tt.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
