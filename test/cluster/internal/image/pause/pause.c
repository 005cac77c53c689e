/* The process that holds a Pod's namespaces: it waits, reaps, and ends when asked. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int sig) { (void)sig; _exit(0); }
static void reap(int sig) { (void)sig; while (waitpid(-1, 0, WNOHANG) > 0) ; }

int main(void)
{
	struct sigaction a = { .sa_handler = end };
	sigaction(SIGINT, &a, 0);
	sigaction(SIGTERM, &a, 0);
	a.sa_handler = reap;
	a.sa_flags = SA_NOCLDSTOP;
	sigaction(SIGCHLD, &a, 0);
	for (;;)
		pause();
}
