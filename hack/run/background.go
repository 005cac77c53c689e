package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// background is work that runs beside the steps, its output in a file.
type background struct {
	title string
	log   string
	done  chan struct{}
	err   error
	end   context.CancelFunc
}

func begin(ctx context.Context, s step) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{title: s.name, log: "out/log/" + slug(s.name) + ".txt", done: make(chan struct{}), end: cancel}
	fmt.Printf("beside the steps that follow: %s (its output: %s)\n", s.name, b.log)
	go func() {
		defer close(b.done)
		out, err := os.Create(b.log)
		if err != nil {
			b.err = err
			return
		}
		defer func() { _ = out.Close() }()
		cmd, err := start(ctx, s.argv, s.dir)
		if err != nil {
			b.err = err
			return
		}
		cmd.Stdout, cmd.Stderr = out, out
		b.err = cmd.Run()
	}()
	return b
}

func (b *background) stop() {
	b.end()
	<-b.done
}

// join waits for the end, showing the last line of the log now and then, and
// the whole end of it where the work failed.
func (b *background) join(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	shown := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if line := tail(b.log, 1); line != shown {
				shown = line
				fmt.Print("  ", line)
			}
		case <-b.done:
			if b.err != nil {
				return fmt.Errorf("%w; the end of %s:\n%s", b.err, b.log, tail(b.log, 25))
			}
			fmt.Print("  ", tail(b.log, 1))
			return nil
		}
	}
}

// tail is the last n lines of a file, as far as they lie in its last 64 KiB.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	const most = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	at := len(b)
	for lines := 0; at > 0; at-- {
		if b[at-1] != '\n' || at == len(b) {
			continue
		}
		if lines++; lines == n {
			break
		}
	}
	return string(b[at:])
}
