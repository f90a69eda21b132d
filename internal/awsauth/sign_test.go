package awsauth

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

var at = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)

// Test_MD10_SigV4Vectors signs the requests of AWS's published test suite.
func Test_MD10_SigV4Vectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(v.body))
			path, query, _ := strings.Cut(v.target, "?")
			in := signed{method: v.method, path: path, query: query, host: "example.amazonaws.com",
				header: http.Header{}, hash: hex.EncodeToString(sum[:])}
			for _, h := range v.headers {
				name, value, _ := strings.Cut(h, ":")
				in.header.Add(name, value)
			}
			c := Credentials{AccessKey: "AKIDEXAMPLE",
				Secret: tenon.NewSecret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), Token: tenon.NewSecret(v.token)}
			in.header.Set("X-Amz-Date", at.Format(stamp))
			if v.token != "" {
				in.header.Set("X-Amz-Security-Token", v.token)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" +
				v.signed + ", Signature=" + v.signature
			if got := in.authorization(c, "us-east-1", "service", at); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Test_MD10_SignRequest checks the headers of a signed request, and that its escaped path is escaped again.
func Test_MD10_SignRequest(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m%3A0/converse", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "changes on the way")
	c := Credentials{AccessKey: "AK", Secret: tenon.NewSecret("s"), Token: tenon.NewSecret("t")}
	Sign(r, EmptyHash, c, "us-east-1", "bedrock", at)
	if got := canonicalPath(r.URL.EscapedPath()); got != "/model/m%253A0/converse" {
		t.Errorf("canonical path %s", got)
	}
	got := r.Header.Get("Authorization")
	if !strings.Contains(got, "Credential=AK/20150830/us-east-1/bedrock/aws4_request, "+
		"SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=") {
		t.Errorf("authorization %s", got)
	}
	if r.Header.Get("X-Amz-Security-Token") != "t" || r.Header.Get("X-Amz-Date") != "20150830T123600Z" {
		t.Errorf("headers %v", r.Header)
	}
}
