#include "cmd/command.h"

int main(int argc, char** argv) { return nos::cmd::Main(argc, argv); }
