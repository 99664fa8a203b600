# Read by the bash of a command before the command: when it ends, it tells in which folder it is.
trap "{ builtin pwd -P >&$AGENT_FOLDER_FD; } 2>/dev/null" EXIT
unset AGENT_FOLDER_FD
if [ -n "$AGENT_BASH_ENV" ]; then
    BASH_ENV=$AGENT_BASH_ENV
    . "$BASH_ENV"
else
    unset BASH_ENV
fi
unset AGENT_BASH_ENV
