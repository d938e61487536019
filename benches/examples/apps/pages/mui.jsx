import * as M from "@mui/material";
import { SimpleTreeView, TreeItem } from "@mui/x-tree-view";
import { useState } from "react";
import { createRoot } from "react-dom/client";

function App() {
  const [dialog, setDialog] = useState(false);
  const [menu, setMenu] = useState(null);
  const [tab, setTab] = useState(0);
  return (
    <M.Box>
      <M.AppBar position="static"><M.Toolbar>
        <M.IconButton id="menu" aria-label="open drawer" color="inherit" onClick={(e) => setMenu(e.currentTarget)}>☰</M.IconButton>
        <M.Typography variant="h6">Orders</M.Typography>
        <M.Button color="inherit" id="new" onClick={() => setDialog(true)}>New order</M.Button>
      </M.Toolbar></M.AppBar>
      <M.Menu anchorEl={menu} open={!!menu} onClose={() => setMenu(null)}>
        {["Profile", "Account", "Log out"].map((one) => <M.MenuItem key={one}>{one}</M.MenuItem>)}
      </M.Menu>
      <M.Dialog open={dialog} onClose={() => setDialog(false)}>
        <M.DialogTitle>New order</M.DialogTitle>
        <M.DialogContent><M.TextField label="Customer" autoFocus /><M.FormControlLabel control={<M.Checkbox />} label="Urgent" /></M.DialogContent>
        <M.DialogActions><M.Button>Cancel</M.Button><M.Button>Create</M.Button></M.DialogActions>
      </M.Dialog>
      <M.Tabs value={tab} onChange={(_, to) => setTab(to)}><M.Tab label="Open" /><M.Tab label="Done" /><M.Tab label="All" /></M.Tabs>
      <M.Stack direction="row" spacing={2} sx={{ p: 2 }}>
        <SimpleTreeView defaultExpandedItems={["a"]}>
          <TreeItem itemId="a" label="North"><TreeItem itemId="b" label="Bergen" /><TreeItem itemId="c" label="Oslo" /></TreeItem>
          <TreeItem itemId="d" label="South"><TreeItem itemId="e" label="Bari" /></TreeItem>
        </SimpleTreeView>
        <M.Stack spacing={2} sx={{ width: 300 }}>
          <M.TextField label="Name" />
          <M.Select id="size" value="m"><M.MenuItem value="s">Small</M.MenuItem><M.MenuItem value="m">Medium</M.MenuItem></M.Select>
          <M.Autocomplete options={["Apple", "Pear", "Plum"]} renderInput={(props) => <M.TextField {...props} label="Fruit" />} />
          <M.FormControlLabel control={<M.Switch defaultChecked />} label="Notify" />
          <M.RadioGroup><M.FormControlLabel value="1" control={<M.Radio />} label="Post" /><M.FormControlLabel value="2" control={<M.Radio />} label="Courier" /></M.RadioGroup>
          <M.Slider defaultValue={30} aria-label="Volume" />
          <M.Rating defaultValue={2} />
          <M.Chip label="Tagged" onDelete={() => {}} onClick={() => {}} />
        </M.Stack>
        <M.Box sx={{ width: 400 }}>
          <M.Accordion><M.AccordionSummary>Details</M.AccordionSummary><M.AccordionDetails>More words</M.AccordionDetails></M.Accordion>
          <M.Card><div id="plain" onClick={() => setTab(1)}><M.CardContent>Listens, and shows nothing of it</M.CardContent></div></M.Card>
          <M.Pagination count={7} />
          <M.Table size="small"><M.TableHead><M.TableRow><M.TableCell><M.TableSortLabel>Number</M.TableSortLabel></M.TableCell><M.TableCell>Sum</M.TableCell></M.TableRow></M.TableHead>
            <M.TableBody>{[1, 2, 3, 4].map((n) => <M.TableRow hover key={n} onClick={() => setTab(2)}><M.TableCell>{n}</M.TableCell><M.TableCell>{n * 10}</M.TableCell></M.TableRow>)}</M.TableBody></M.Table>
        </M.Box>
      </M.Stack>
    </M.Box>
  );
}
createRoot(document.getElementById("root")).render(<App />);
