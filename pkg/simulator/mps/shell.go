package mps

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// shell gives the commands on standard input to the daemon, one a line. Their errors
// are output like any other, and no failure of the program (assumed).
func shell(pipe string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		a, err := ask(pipe, request{Command: words, Stdin: true})
		if err != nil {
			return err
		}
		fmt.Print(a.Output)
		if a.Error != "" {
			fmt.Println(a.Error)
		}
	}
	return lines.Err()
}

// tell gives one command to the daemon.
func tell(pipe string, r request) error {
	a, err := ask(pipe, r)
	if err != nil {
		return err
	}
	fmt.Print(a.Output)
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

func ask(pipe string, r request) (a answer, err error) {
	conn, err := dial(pipe)
	if err != nil {
		return a, fmt.Errorf("Cannot find MPS control daemon process")
	}
	defer conn.Close()
	if err := send(conn, r); err != nil {
		return a, err
	}
	return a, json.NewDecoder(conn).Decode(&a)
}
