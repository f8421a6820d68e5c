%% The programs in Erlang that Hearth's components are compared with:
%% erl -noshell -run peers main ROW ROUNDS.
%%
%% Processes and messages, in the same shapes as research/benches/runtime/*.isf. A message waits in
%% a mailbox, so where a sender must not continue before its value is taken, the receiver sends an
%% acknowledgement back.
-module(peers).
-export([main/1]).

main([Row, Rounds]) ->
    %% A process for the work: the one that runs this is the system's.
    Self = self(),
    spawn_link(fun() -> Self ! {sum, run(Row, list_to_integer(Rounds))} end),
    receive
        {sum, Sum} ->
            %% As integers of 32 bits go.
            <<Wrapped:32/signed>> = <<Sum:32>>,
            io:format("~b~n", [Wrapped]),
            halt(0)
    end.

run("ping-pong", Rounds) ->
    Pong = spawn_link(fun pong/0),
    ping(Pong, Rounds, 0);
run("stream", Rounds) ->
    Sink = self(),
    spawn_link(fun() -> source(Sink, 1, Rounds) end),
    sink(Rounds, 0);
run("fan-in", Rounds) ->
    Sink = self(),
    [spawn_link(fun() -> source(Sink, 1, Rounds) end) || _ <- lists:seq(1, 4)],
    sink(4 * Rounds, 0);
run("ring", Laps) ->
    %% Made from the last on, so that each knows the next.
    Self = self(),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> station(Next) end) end, Self,
                        lists:seq(2, 503)),
    laps(First, Laps, 0);
run("create", Thousands) ->
    create(Thousands, 0);
run("blocked", Count) ->
    First = row(Count, self()),
    erlang:yield(),
    First ! 0,
    receive Sum -> Sum end.

pong() ->
    receive {From, Value} -> From ! Value + 1 end,
    pong().

ping(_, 0, Value) -> Value;
ping(Pong, N, Value) ->
    Pong ! {self(), Value},
    receive Answer -> ping(Pong, N - 1, Answer) end.

source(_, I, Rounds) when I > Rounds -> ok;
source(Sink, I, Rounds) ->
    Sink ! {self(), I},
    receive taken -> source(Sink, I + 1, Rounds) end.

sink(0, Sum) -> Sum;
sink(N, Sum) ->
    receive
        {From, Value} ->
            From ! taken,
            sink(N - 1, Sum + Value)
    end.

station(Next) ->
    receive Token -> Next ! Token + 1 end,
    station(Next).

laps(_, 0, Value) -> Value;
laps(First, N, Value) ->
    First ! Value + 1,
    receive Token -> laps(First, N - 1, Token) end.

create(0, Made) -> Made;
create(N, Made) ->
    Self = self(),
    ended(999),
    spawn(fun() -> Self ! 1000 end),
    receive More -> create(N - 1, Made + More) end.

ended(0) -> ok;
ended(N) ->
    spawn(fun() -> ok end),
    ended(N - 1).

row(0, Next) -> Next;
row(N, Next) ->
    row(N - 1, spawn(fun() -> receive Value -> Next ! Value + 1 end end)).
