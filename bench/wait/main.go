// Wait keeps the go command busy that runs it, until its input ends.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println(`{"event":"ready"}`)
	os.Stdin.Read(make([]byte, 1))
}
